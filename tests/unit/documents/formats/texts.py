"""Plain text, HTML, tables, subtitles, gettext and XLIFF."""

from service.documents import DocumentOptions
from tests.unit.documents.formats.format import Format, Mixture, crlf, in_utf_16, lowered, marked, same
from tests.unit.documents.formats.readers import of_csv, of_html, of_lines, of_po, of_srt, of_tsv, of_vtt, of_xliff
from tests.unit.documents.pseudo import served

COLUMN = DocumentOptions(columns=("text",), target="de")

TEXT = Format(
    lambda body, _: f"{body}\n".encode(),
    same("TWO WORDS", "  A  ", "", "\tÄ B\t", "12 %", "END. HÉ?", "{N, PLURAL, ONE {# A} OTHER {# B}}"),
    of_lines,
    variants=(crlf, marked, in_utf_16, lambda data: data.replace(b"\n", b"\r")),
)

_CELLS = same(
    '1,"HE SAID ""GO"", AND",x',
    "2,TWO WORDS,keep",
    "3,12,y",
    "4,,y",
    "",
    '"5","A\nB",y',
    "7,É,y,z",
    "8",
)
_OTHER = str.maketrans(",", ";")

CSV = Format(
    lambda body, _: f"id,text,note\n{body}\n".encode(),
    _CELLS,
    of_csv,
    variants=(
        *(crlf, marked, in_utf_16),
        lambda data: b"sep=,\n" + data,
        lambda data: data.decode().translate(_OTHER).encode(),
        lambda data: data.replace(b",", b"|"),
    ),
    options=COLUMN,
)
TSV = Format(
    lambda body, _: f"id\ttext\tnote\n{body}\n".encode(),
    {key.replace(",", "\t"): value.replace(",", "\t") for key, value in _CELLS.items()},
    of_tsv,
    variants=(crlf, marked, in_utf_16),
    options=COLUMN,
)

HTML = Format(
    lambda body, language: (
        f'<!doctype html>\n<html lang="{language}"><head><title>12</title></head>\n<body>\n{body}\n</body></html>\n'
    ).encode(),
    same(
        "<h1>TWO WORDS</h1><p>12 %</p><hr>",
        '<p class="x">FIND <b>THE KEYS</b><br>AND <i>GO</i> &amp; SO</p>',
        "<p>A <code>x()</code> <kbd>y</kbd> B</p>",
        "<ul class=menu><li><a href=x>A</a><li><a href=y>B</a></ul>",
        "<pre>x</pre><script>y</script><style>p { z: 1 }</style><!-- c --><template>x</template>",
        "<p translate=no>x</p><p class=notranslate>y <b>z</b></p><p>A <span translate=no>x</span> B</p>",
        "<p>h<sub>2</sub>o IS OPEN.<sup>[1]</sup> <ruby>B<rt>x</rt></ruby></p>",
        "<table><tr><th>A<td>B</table><dl><dt>A<dd>B</dl>",
        "<p>A {{ x }} {% if y %}B{% endif %} ${z} <?= w ?> C</p>",
        "<p><img src=a alt='A DOOR'> AND <a href=\"x\" title='HELP ME'>A</a></p>",
        "<input placeholder='YOUR NAME' value='x'><button aria-label='A'>B</button><input type=submit value='GO ON'>",
        "<select><option>A</option><optgroup label='B'></optgroup></select><textarea>c</textarea>",
        "<meta name=description content='A DOOR'><meta name=viewport content='width=1'><!-- d -->",
        "<p>A&nbsp;B 10&nbsp;M 5 &lt; 6</p>",
        "<svg><text>a</text><path d='M0'/></svg><math><mi>x</mi></math>",
    ),
    of_html,
    variants=(crlf, marked),
    mixtures=(
        Mixture(
            (
                *("<p>{}</p>", "<div>{}<p>{}</p>{}</div>", "<ul><li>{}<li>{}</ul>", "<h2>{}</h2>", "{}<hr>{}"),
                *("<table><tr><td>{}<td>{}</table>", "<blockquote>{}</blockquote>", "<p translate=no>{}</p>{}"),
            ),
            (
                *(
                    "word ",
                    "two words",
                    ", ",
                    ". Then ",
                    "<br>",
                    "<img src=a alt='a b'>",
                    "<code>x</code> ",
                    "<wbr>",
                    "é ",
                ),
                *(
                    "m<sup>2</sup> ",
                    "H<sub>2</sub>O ",
                    "<sup>[1]</sup> ",
                    " &amp; ",
                    "&nbsp;",
                    "{{ x }} ",
                    "<!-- c -->",
                    "\n",
                ),
                *("<input placeholder=Name>", "<svg><path d='M0'/></svg>", "5 &lt; 6 "),
            ),
            (
                "<b>{}</b>",
                "<i class=x>{} </i>",
                "<a href=y title='a b'>{}</a>",
                "<span> {}</span>",
                "<b translate=no>{}</b>",
            ),
        ).made,
    ),
    options=DocumentOptions(target="de", attributes=True),
    translate=served,
)

_HEADER = '"Content-Type: text/plain; charset={}\\n"\n"Plural-Forms: nplurals={};\\n"\n'


def _entry(before: str, text: str, translation: str, after: str = "") -> tuple[str, str]:
    return tuple(f"{before}msgid {text}\nmsgstr {each}\n{after}" for each in ('""', translation))  # type: ignore[return-value]


_ENTRIES = dict(
    [
        _entry("", '"two words"', '"TWO WORDS"'),
        _entry('# a person\n#. extracted\n#: file.c:12\n#, c-format\nmsgctxt "m"\n', r'"open %s\n"', r'"OPEN %s\n"'),
        _entry("", '"find "\n"keys"', '"FIND KEYS"'),
        _entry("", r'"a \"b\"\tc\\d é"', r'"A \"B\"\tC\\D É"'),
        _entry("", '"save &as..."', '"SAVE &AS..."'),
        _entry("", '"<b>a</b> &amp; _new"', '"<b>A</b> &amp; _NEW"'),
        _entry("", '"see :ref:`the page <page>`"', '"SEE :ref:`THE PAGE <page>`"'),
        _entry("", r'"\nusage:\n  a\n"', '""\n"\\n"\n"USAGE:\\n"\n"  A\\n"'),
        ('#, fuzzy\n#| msgid "x"\nmsgid "y"\nmsgstr "alt"\n', '#, fuzzy\n#| msgid "x"\nmsgid "y"\nmsgstr "Y"\n'),
        ('msgid "done"\nmsgstr "fertig"\n', 'msgid "done"\nmsgstr "fertig"\n'),
        (
            '#, c-format\nmsgid "%d a"\nmsgid_plural "%d b"\nmsgstr[0] ""\nmsgstr[1] ""\n',
            '#, c-format\nmsgid "%d a"\nmsgid_plural "%d b"\nmsgstr[0] "%d A"\nmsgstr[1] "%d B"\n',
        ),
        *(
            (f'msgid "c"\nmsgid_plural "d"\n{forms}', f'msgid "c"\nmsgid_plural "d"\n{forms}')
            for forms in ('msgstr[0] ""\nmsgstr[1] ""\nmsgstr[2] ""\n',)
        ),
        ('#~ msgid "old"\n#~ msgstr "alt"\n', '#~ msgid "old"\n#~ msgstr "alt"\n'),
        ('msgid "12"\nmsgstr ""\n', 'msgid "12"\nmsgstr ""\n'),
    ]
)

PO = Format(
    lambda body, _: f'msgid ""\nmsgstr ""\n{_HEADER.format("UTF-8", "2; plural=n != 1")}\n{body}'.encode(),
    _ENTRIES,
    of_po,
    has_targets=True,
    variants=(crlf,),
)
POT = Format(
    lambda body, language: (
        'msgid ""\nmsgstr ""\n"Language: {}\\n"\n'.format("" if language == "en" else language)
        + _HEADER.format(
            *(("CHARSET", "INTEGER; plural=EXPRESSION"), ("UTF-8", "2; plural=(n != 1)"))[language == "de"]
        )
        + f"\n{body}"
    ).encode(),
    _ENTRIES,
    of_po,
    has_targets=True,
)


def _subtitles(*said: str) -> dict[str, str]:
    """Return cues as `same` does; `{}` are the times of each."""
    return same(*(each.replace("@", "00:00:01{0}000 --> 00:00:02{0}000") for each in said))


_CUES = (
    "1\n@\nTWO WORDS.\n",
    "2\n@\n<i>WHERE IS THE\nTRAIN</i> STATION?\n",
    "3\n@\n- HELLO.\n- CLOSE IT.\n",
    "4\n@\n...\n",
    "5\n@\nANNA: COME.\n",
    "6\n@\n♪ LA LA ♪\n",
    "7\n@\nI NEVER THOUGHT THAT\n\n8\n@\nWE WOULD SEE IT.\n",
    "9\n@\n[DOOR OPENS]\n",
)

SRT = Format(
    lambda body, _: f"{body}\n".encode(),
    {key.format(","): value.format(",") for key, value in _subtitles(*_CUES).items()}
    | same(
        "1\n00:00:03,000 --> 00:00:04,000 x1:1\n{\\an8}CLOSE <b>THE</b> WINDOW.\n",
    ),
    of_srt,
    variants=(crlf, marked, in_utf_16),
)
VTT = Format(
    lambda body, _: f"WEBVTT - a title\n\n{body}\n".encode(),
    {key.format("."): value.format(".") for key, value in _subtitles(*_CUES).items()}
    | same(
        "00:01.000 --> 00:02.000\n<v bob>OPEN IT.\n<v ann>CLOSE <b>IT</b>.\n",
        "00:03.000 --> 00:04.000\n<ruby>OLD<rt>x</rt></ruby> HOUSE.\n",
    )
    | {each: each for each in ("NOTE a file\nof notes\n", "STYLE\n::cue { color: red }\n", "REGION\nid:a\n")}
    | {
        f"intro\n00:01.000 --> 00:02.000 line:0 align:start\n<v Bob>{said}\n": (
            f"intro\n00:01.000 --> 00:02.000 line:0 align:start\n<v Bob>{written}\n"
        )
        for said, written in [
            (
                "find <c.red>the keys</c> &amp; go\n<00:01.500>home.",
                "FIND <c.red>THE KEYS</c>\n&amp; GO <00:01.500>HOME.",
            )
        ]
    },
    of_vtt,
    variants=(crlf, marked),
)


_ALTERNATIVE = "<alt-trans><source>b</source><target>c</target></alt-trans>"
_STATE = 'state="translated" state-qualifier="mt-suggestion"'


def _units_1(*targets: str) -> dict[str, str]:
    unit = "<trans-unit><source>{}</source>{}</trans-unit>"
    return {
        unit.format(lowered(each), ""): unit.format(lowered(each), f"<target {_STATE}>{each}</target>")
        for each in targets
    }


def _units_2(*targets: str) -> dict[str, str]:
    unit = "<unit><segment{}><source>{}</source>{}</segment></unit>"
    return {
        unit.format("", lowered(each), ""): unit.format(
            ' state="translated"', lowered(each), f"<target>{each}</target>"
        )
        for each in targets
    }


XLIFF_1 = Format(
    lambda body, language: (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!-- c -->\n'
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">\n<file original="a" source-language="en"'
        + ' target-language="de"' * (language == "de")
        + f"><body>\n{body}\n</body></file></xliff>\n"
    ).encode(),
    _units_1(
        "TWO WORDS",
        'FIND <g id="1">THE <x id="2"/>KEYS</g> &amp; <ph id="3">%s</ph>GO <mrk mtype="protected">xr-7</mrk>',
        'A <bpt id="1">{b}</bpt>BOLD<ept id="1">{/b}</ept> WORD',
        'ONE<x id="1" ctype="lb"/>TWO',
        '10 m<g id="1" ctype="x-sup">2</g> NOW',
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
        '<trans-unit><source>a</source><target state="new" o="v">x</target></trans-unit>': (
            f'<trans-unit><source>a</source><target o="v" {_STATE}>A</target></trans-unit>'
        ),
        f"<trans-unit><source>a</source><target/>{_ALTERNATIVE}</trans-unit>": (
            f"<trans-unit><source>a</source><target {_STATE}>A</target>{_ALTERNATIVE}</trans-unit>"
        ),
    },
    of_xliff,
    has_targets=True,
    variants=(crlf, marked),
    mixtures=(
        Mixture(
            ("<trans-unit><source>{}</source></trans-unit>",),
            (
                "word ",
                "two words",
                " &amp; ",
                "%s ",
                '<x id="1"/>',
                '<ph id="2">a</ph>',
                '<x id="3" ctype="lb"/>',
                "é, ",
            ),
            ('<g id="4">{}</g>', '<mrk mtype="term">{} </mrk>', '<bpt id="5">b</bpt>{}<ept id="5">b</ept>'),
        ).made,
    ),
)
XLIFF_2 = Format(
    lambda body, language: (
        '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en"'
        + ' trgLang="de"' * (language == "de")
        + f'>\n<file id="f">\n{body}\n</file></xliff>\n'
    ).encode(),
    _units_2(
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
        ),
    },
    of_xliff,
    has_targets=True,
    variants=(crlf, marked),
    mixtures=(
        Mixture(
            ("<unit><segment><source>{}</source></segment></unit>",),
            ("word ", "two words", " &amp; ", "%s ", '<ph id="1"/>', '<cp hex="0001"/>', "é, "),
            ('<pc id="4">{}</pc>', '<mrk id="5">{} </mrk>', '<sc id="6"/>{}<ec startRef="6"/>'),
        ).made,
    ),
)
