"""Gettext, XLIFF and TMX: what a translation is written beside."""

from tests.unit.documents.formats.format import Format, Mixture, crlf, lowered, marked, same
from tests.unit.documents.formats.markup_readers import of_tmx, of_ts, of_xliff
from tests.unit.documents.formats.readers import of_po

_HEADER = '"Content-Type: text/plain; charset={}\\n"\n"Plural-Forms: nplurals={};\\n"\n'


_FLAGS = '# a person\n#. extracted\n#: file.c:12\n#, c-format\nmsgctxt "m"\n'
_ENTRIES = (
    {
        f'{before}msgid {text}\nmsgstr ""\n': f"{before}msgid {text}\nmsgstr {translation}\n"
        for before, text, translation in (
            ("", '"two words"', '"TWO WORDS"'),
            (_FLAGS, r'"open %s\n"', r'"OPEN %s\n"'),
            ("", '"find "\n"keys"', '"FIND KEYS"'),
            ("", r'"a \"b\"\tc\\d é"', r'"A \"B\"\tC\\D É"'),
            ("", '"save &as..."', '"SAVE &AS..."'),
            ("", '"<b>a</b> &amp; _new"', '"<b>A</b> &amp; _NEW"'),
            ("", '"see :ref:`the page <page>`"', '"SEE :ref:`THE PAGE <page>`"'),
            ("", r'"\nusage:\n  a\n"', '""\n"\\n"\n"USAGE:\\n"\n"  A\\n"'),
        )
    }
    | same(
        'msgid "done"\nmsgstr "fertig"\n',
        '#~ msgid "old"\n#~ msgstr "alt"\n',
        'msgid "12"\nmsgstr ""\n',
    )
    | {
        '#, fuzzy\n#| msgid "x"\nmsgid "y"\nmsgstr "alt"\n': '#, fuzzy\n#| msgid "x"\nmsgid "y"\nmsgstr "Y"\n',
        '#, c-format\nmsgid "%d a"\nmsgid_plural "%d b"\nmsgstr[0] ""\nmsgstr[1] ""\n': (
            '#, c-format\nmsgid "%d a"\nmsgid_plural "%d b"\nmsgstr[0] "%d A"\nmsgstr[1] "%d B"\n'
        ),
        'msgid "c"\nmsgid_plural "d"\nmsgstr[0] ""\nmsgstr[1] ""\nmsgstr[2] ""\n': (
            '#, fuzzy\nmsgid "c"\nmsgid_plural "d"\nmsgstr[0] "C"\nmsgstr[1] "D"\nmsgstr[2] "D"\n'
        ),
    }
)


def _template(body: str, language: str) -> bytes:
    found = ("UTF-8", "2; plural=(n != 1)") if language == "de" else ("CHARSET", "INTEGER; plural=EXPRESSION")
    named = f'"Language: {language.removeprefix("en")}\\n"\n'
    return f'msgid ""\nmsgstr ""\n{named}{_HEADER.format(*found)}\n{body}'.encode()


PO = Format(
    lambda body, _: f'msgid ""\nmsgstr ""\n{_HEADER.format("UTF-8", "2; plural=n != 1")}\n{body}'.encode(),
    _ENTRIES,
    of_po,
    has_targets=True,
    variants=(crlf,),
)
POT = Format(_template, _ENTRIES, of_po, has_targets=True)

_ALTERNATIVE = "<alt-trans><source>b</source><target>c</target></alt-trans>"
_STATE = 'state="translated" state-qualifier="mt-suggestion"'
_INLINES = "word |two words| &amp; |%s |é, |"


def _units(before: str, after: str, *targets: str) -> dict[str, str]:
    """Return units whose texts are in templates, before and after their translation."""
    return {before.format(lowered(each)): after.format(lowered(each), each) for each in targets}


XLIFF_1 = Format(
    lambda body, language: (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!-- c -->\n'
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n<file original="a" source-language="en"'
        + ' target-language="de"' * (language == "de")
        + f"><body>\n{body}\n</body></file></xliff>\n"
    ).encode(),
    _units(
        "<trans-unit><source>{}</source></trans-unit>",
        f"<trans-unit><source>{{}}</source><target {_STATE}>{{}}</target></trans-unit>",
        "TWO WORDS",
        'FIND <g id="1">THE <x id="2"/>KEYS</g> &amp; <ph id="3">%s</ph>GO <mrk mtype="protected">xr-7</mrk>',
        'A <bpt id="1">{b}</bpt>BOLD<ept id="1">{/b}</ept> WORD',
        'ONE<x id="1" ctype="lb"/>TWO',
        '10 M<g id="1" ctype="x-sup">2</g> NOW',
        "&lt;b&gt;ONE&lt;/b&gt; TWO",
        "%s OF %d",
        "SAVE &amp;AS...",
        '<g id="1">ONE</g> <g id="2">TWO</g>',
    )
    | same(
        '<trans-unit translate="no"><source>no</source></trans-unit>',
        "<trans-unit><source>done</source><target>fertig</target></trans-unit>",
        "<trans-unit><source>12</source></trans-unit><group><note>a note</note></group>",
    )
    | {
        "<trans-unit><source>a</source><target o='v' state=\"new\">x</target></trans-unit>": (
            f"<trans-unit><source>a</source><target o='v' {_STATE}>A</target></trans-unit>"
        ),
        f"<trans-unit><source>a</source><target/>{_ALTERNATIVE}</trans-unit>": (
            f"<trans-unit><source>a</source><target {_STATE}>A</target>{_ALTERNATIVE}</trans-unit>"
        ),
    },
    of_xliff,
    has_targets=True,
    variants=(crlf, marked),
    mixture=Mixture(
        "<trans-unit><source>{}</source></trans-unit>",
        _INLINES + '<x id="1"/>|<ph id="2">a</ph>|<x id="3" ctype="lb"/>',
        '<g id="4">{}</g>|<mrk mtype="term">{} </mrk>|<bpt id="5">b</bpt>{}<ept id="5">b</ept>',
    ),
)
XLIFF_2 = Format(
    lambda body, language: (
        '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en"'
        + ' trgLang="de"' * (language == "de")
        + f'>\n<file id="f">\n{body}\n</file></xliff>\n'
    ).encode(),
    _units(
        "<unit><segment><source>{}</source></segment></unit>",
        '<unit><segment state="translated"><source>{}</source><target>{}</target></segment></unit>',
        "TWO WORDS",
        'FIND <pc id="1">THE KEYS</pc> <ph id="2" dataRef="d"/> NOW',
        'A <sc id="3"/>DOOR<ec startRef="3"/>',
        '<mrk id="4" translate="no">x</mrk> A <cp hex="0001"/>',
        "&lt;b&gt;ONE&lt;/b&gt; TWO",
    )
    | same(
        '<unit translate="no"><segment><source>no</source></segment></unit>',
        '<unit><segment state="translated"><source>done</source><target>fertig</target></segment></unit>',
        "<unit><originalData><data>x</data></originalData><notes><note>b</note></notes><ignorable><source> </source>"
        "</ignorable><segment><source>12</source></segment></unit>",
    )
    | {
        '<unit><segment state="initial" subState="x:y"><source>a</source><target>t</target></segment></unit>': (
            '<unit><segment state="translated"><source>a</source><target>A</target></segment></unit>'
        )
    },
    of_xliff,
    has_targets=True,
    variants=(crlf, marked),
    mixture=Mixture(
        "<unit><segment><source>{}</source></segment></unit>",
        _INLINES + '<ph id="1"/>|<cp hex="0001"/>',
        '<pc id="4">{}</pc>|<mrk id="5">{} </mrk>|<sc id="6"/>{}<ec startRef="6"/>',
    ),
)
_GERMAN = '<tuv xml:lang="de"><seg>{}</seg></tuv>'
TMX = Format(
    lambda body, _: (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'
        f'<tmx version="1.4"><header srclang="en" datatype="PlainText"/><body>\n{body}\n</body></tmx>\n'
    ).encode(),
    _units(
        '<tu><note>é</note>\n <tuv xml:lang="en">\n  <seg>{}</seg></tuv></tu>',
        '<tu><note>é</note>\n <tuv xml:lang="en">\n  <seg>{}</seg></tuv>\n'
        ' <tuv xml:lang="de">\n  <seg>{}</seg>\n </tuv></tu>',
        "TWO WORDS",
        'FIND <bpt i="1">{b}</bpt>THE<ept i="1">{/b}</ept> <ph x="2"/>KEYS &amp; <hi>GO</hi>',
        "A &lt;b&gt;DOOR&lt;/b&gt; OF %d",
        "SAVE &amp;AS...",
        'ONE<it pos="begin">b</it> TWO',
    )
    | {
        f'<tu>{before}<tuv xml:lang="en-US"><seg>a\nb</seg></tuv></tu>': (
            f'<tu>{after}<tuv xml:lang="en-US"><seg>a\nb</seg></tuv></tu>'
        )
        for before, after in (
            (_GERMAN.format("c"), _GERMAN.format("c")),
            (_GERMAN.format(""), _GERMAN.format("A\nB")),
            (_GERMAN.format("").replace("<seg></seg>", "<seg/>"), _GERMAN.format("A\nB")),
        )
    }
    | {
        each: each
        for each in (
            '<tu><tuv xml:lang="EN"><seg>12</seg></tuv></tu><tu><tuv xml:lang="fr"><seg>a</seg></tuv></tu>',
            *("<tu/>", "<tu><prop>a</prop></tu>"),
        )
    },
    of_tmx,
    has_targets=True,
    variants=(crlf, marked),
    mixture=Mixture(
        '<tu><tuv xml:lang="en"><seg>{}</seg></tuv></tu>',
        _INLINES + '<ph x="1"/>|<it pos="end" x="2">b</it>|<ut>a</ut>',
        '<hi x="4">{}</hi>|<bpt i="5">b</bpt>{}<ept i="5">b</ept>',
    ),
)

_FORM = "<numerusform>{}</numerusform>"
QT = Format(
    lambda body, language: (
        '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE TS>\n<TS version="2.1" sourcelanguage="en"'
        + ' language="de"' * (language == "de")
        + f">\n<context>\n<name>Main</name>\n{body}\n</context>\n</TS>\n"
    ).encode(),
    _units(
        '<message>\n<location filename="a.cpp" line="2"/>\n<source>{}</source>\n<comment>c</comment>\n'
        '<translation type="unfinished"></translation>\n</message>',
        '<message>\n<location filename="a.cpp" line="2"/>\n<source>{}</source>\n<comment>c</comment>\n'
        "<translation>{}</translation>\n</message>",
        "TWO WORDS",
        "SAVE &amp;AS...",
        "ITEM %1 OF %2, &lt;b&gt;BOLD&lt;/b&gt; ONE",
        "ONE\nTWO FILE(S)",
        'TONE <byte value="x7"/>NOW &quot;IT&apos;S&quot;',
    )
    | same(
        "<message><source>done</source><translation>fertig</translation></message>",
        '<message><source>old</source><translation type="vanished">alt</translation></message>',
        '<message><source>older</source><translation type="obsolete"/></message>',
        '<message><source>%1 %</source><translation type="unfinished"/></message>',
    )
    | {
        '<message><source>a</source><translation type="unfinished"/></message>': (
            "<message><source>a</source><translation>A</translation></message>"
        ),
        '<message id="i"><source>b</source><translation type="unfinished">x</translation></message>': (
            '<message id="i"><source>b</source><translation type="unfinished">B</translation></message>'
        ),
        '<message numerus="yes"><source>%Ln file(s)</source>'
        f'<translation type="unfinished">{_FORM.format("")}<numerusform/></translation></message>': (
            '<message numerus="yes"><source>%Ln file(s)</source>'
            f"<translation>{_FORM.format('%Ln FILE')}{_FORM.format('%Ln FILES')}</translation></message>"
        ),
        f'<message numerus="yes"><source>%n box(es)</source><translation>{_FORM.format("")}</translation></message>': (
            '<message numerus="yes"><source>%n box(es)</source>'
            f"<translation>{_FORM.format('%n BOXES')}</translation></message>"
        ),
        f'<message numerus="yes"><source>%n owl(s)</source><translation>{_FORM * 3}</translation></message>'.format(
            *"   "
        ): (
            '<message numerus="yes"><source>%n owl(s)</source><translation type="unfinished">'
            f"{_FORM.format('%n OWL')}{_FORM.format('%n OWLS') * 2}</translation></message>"
        ),
    },
    of_ts,
    has_targets=True,
    variants=(crlf, marked),
)
