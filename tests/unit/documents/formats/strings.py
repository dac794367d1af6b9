"""Strings of programs: JSON, YAML, properties, Apple's strings, Android's and .NET's resources."""

import textwrap
from collections.abc import Mapping

from tests.unit.documents.formats.format import Format, Mixture, crlf, in_utf_16, marked, same
from tests.unit.documents.formats.markup_readers import of_xml
from tests.unit.documents.formats.readers import (
    of_catalog,
    of_json,
    of_notebook,
    of_properties,
    of_rails,
    of_strings,
    of_yaml,
    unescaped,
)

_JSON = same(
    '"a.b" : "TWO WORDS"',
    '"n": 12.50e+3, "t": true, "z": null',
    '"deep": {"er": [ "ONE", 1, {"x": "Y Z"}, [] ]}',
    '"twice": "A", "twice": "B"',
    r'"e": "A \"B\"\n\tC \\ D"',
    '"space": "  X  "',
    '"none": "", "digits": "12 %"',
    '"key_other": "Ä"',
    r'"half": "a \ud83d"',
    '"@k": {"description": "d"}, "$schema": "http://a/b"',
) | {r'"pair": "a \ud83d\ude00"': '"pair": "A \U0001f600"', '"@@locale": "en", "k": "a"': '"@@locale": "de", "k": "A"'}

JSON = Format(
    lambda body, _: f'{{"é": "",\n{body}\n}}\n'.encode(), _JSON, of_json, separator=",\n", variants=(crlf, marked)
)

_CELL = '{"cell_type": "markdown", "metadata": {"source": ["left"]}, "source": '
NOTEBOOK = Format(
    lambda body, _: f'{{"cells": [\n{body}\n], "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}\n'.encode(),
    same(
        f'{_CELL}"A *B*"}}',
        f'{_CELL}[\n   "# ONE `x`\\n",\n   "\\n",\n   "TWO\\n"\n  ]}}',
        f'{_CELL}[ "| A | B |\\n", "|---|---|\\n", "| C | $x$ |" ]}}',
        '{"source": ["---\\n", "TITLE: A\\n", "\\n", "---"], "cell_type": "markdown"}',
        f"{_CELL}[]}}",
        f'{_CELL}"\\ud83d a"}}',
        '{"cell_type": "code", "source": ["# left"], "outputs": [{"text": ["left\\n"], "x": 1.50}]}',
        '{"cell_type": "raw", "source": "left"}',
    )
    | {f'{_CELL}["two\\n", "lines \\u00e9"]}}': f'{_CELL}["TWO LINES \\u00c9"]}}'},
    of_notebook,
    separator=",\n",
    variants=(crlf, marked),
)


def entries(constructs: Mapping[str, str]) -> Format:
    """Return JSON whose root has only entries that a program knows."""
    return Format(lambda body, _: f"{{\n{body}\n}}\n".encode(), constructs, of_json, separator=",\n")


CHROME = entries(
    same(
        '"a": {"message": "A $B$", "description": "d", "placeholders": {"b": {"content": "$1"}}}',
        '"b": {"message": "C"}',
    )
)
GO = entries(same('"a": {"description": "d", "one": "A", "other": "B"}', '"b": {"other": "C", "hash": "c"}'))

_YAML = same(
    "k: TWO WORDS # a comment",
    "k: 'IT''S'",
    "k: |\n  ONE\n\n    TWO\n",
    "k: |2+\n   ONE\n\n",
    "k:\n- ONE\n- a: B\n  c: TWO WORDS\n-\n  - X",
    "k: [A B, \"C\", {d: E, 'f': G H}, 1] # x",
    "k: {a: B,\n  c}",
    "k: &name A B\nl: *name\n<<: *name",
    "k: !!str 12 A\nl: !ruby/symbol b\nm: :sym",
    "k: yes\nl: ~\nm: 1e3\no:",
    "date:\n  formats:\n    x: '%d of'\n  day: SUNDAY",
    "number:\n  format:\n    format: '%n %u'\n    unit: POUND",
) | {
    r'k: "a \"b\"\n\u00e9"': 'k: "A \\"B\\"\\n\\u00c9"',
    'k: "one\n  two\n\n  three \\\n  four"': 'k: "ONE TWO\\nTHREE FOUR"',
    "k: one\n  two # c": "k: ONE TWO # c",
    "k: >-\n  one\n  two\n\n  three": "k: >-\n  ONE TWO\n\n  THREE",
    "n: 2001-01-02T03:04:05Z": "n: 2001-01-02T03:04:05Z",
    "a_html: <b>x</b> y &amp; z": 'a_html: "<b>X</b> Y &amp; Z"',
    '"quoted key": -x y': '"quoted key": "-x Y"',
    "u: see http://a.b/c#d": "u: SEE HTTP://A.B/C#D",
    "q:\n  later\n  text": "q:\n  LATER TEXT",
}

YAML = Format(
    lambda body, _: f"# a comment\ntop: 1\n{body}\n".encode(),
    _YAML | same("---\nother: 'DOC'"),
    of_yaml,
    once=[each for each in _YAML if "&name" in each],
    variants=(crlf, marked),
)
RAILS = Format(
    lambda body, language: f"# a comment\n{language}:\n  x: 1\n{textwrap.indent(body, '  ')}\n".encode(),
    _YAML,
    of_rails,
    once=YAML.once,
)

PROPERTIES = Format(
    lambda body, _: f"# é\n{body}\n".encode(),
    same(
        "key=TWO WORDS",
        "k\\ e\\:y A",
        "! a comment\n  # another\\\n\nempty=\nalone",
        "e=\\ A\\tB\\n\\\\C",
        "m=IT''S {0}",
        "m=IT'S {0}",
        "t=A  ",
        "n=12",
    )
    | {"k : a\\\n    b\\\r\n  c": "k : ABC", "u=\\u0041b": "u=AB"},
    of_properties,
    variants=(crlf,),
)

STRINGS = Format(
    lambda body, _: f"/* é */\n{body}\n".encode(),
    same('"a b" = "TWO WORDS";', 'key="A \\"B\\"\\n";// c', '"alone";', '"p" = "%1$@ A";')
    | {'/* = "no"; */ "k" /**/ = "a\nb" ;': '/* = "no"; */ "k" /**/ = "A\\nB" ;'},
    of_strings,
    variants=(marked, in_utf_16),
)


def _plist(body: str, _: str) -> bytes:
    doctype = '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">'
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n{doctype}\n<plist version="1.0">\n<dict>\n'
    return f"{head}{body}\n</dict>\n</plist>\n".encode()


def _variable(*categories: str) -> str:
    keys = "<key>NSStringFormatSpecTypeKey</key><string>NSStringPluralRuleType</string>"
    keys += "<key>NSStringFormatValueTypeKey</key><string>lld</string>"
    forms = "".join(f"<key>{each.split()[0]}</key><string>{' '.join(each.split()[1:])}</string>" for each in categories)
    return (
        "<key>n_format</key><dict>\n<key>NSStringLocalizedFormatKey</key><string>%#@n@</string>\n"
        f"<key>n</key><dict>{keys}{forms}</dict>\n</dict>"
    )


STRINGS_DICT = Format(
    _plist,
    {
        _variable("one %lld file", "other %lld files"): _variable("one %lld FILE", "other %lld FILES"),
        _variable("zero café &amp; bar", 'other "%2$@" has %1$#@n@'): _variable(
            "zero CAFÉ &amp; BAR", 'other "%2$@" HAS %1$#@n@'
        ),
        **{
            f"<key>w</key><dict><key>NSString{rule}RuleType</key><dict><key>20</key>{before}</dict></dict>": (
                f"<key>w</key><dict><key>NSString{rule}RuleType</key><dict><key>20</key>{after}</dict></dict>"
            )
            for rule, before, after in (
                ("VariableWidth", "<string>a\n</string>", "<string>A\n</string>"),
                ("DeviceSpecific", "<string/>", "<string/>"),
            )
        },
    },
    of_xml(),
    variants=(marked,),
)


def _entry(key: str, members: str, *localizations: str) -> str:
    """Return what Xcode writes for a key; each localization is a language and a state, and its text."""
    members = textwrap.indent(members, " " * 6)
    units = [
        f'        "{language}" : {{\n          "stringUnit" : {{\n            "state" : "{state}",\n'
        f'            "value" : "{text}"\n          }}\n        }}'
        for language, state, text in (each.split(maxsplit=2) for each in localizations)
    ]
    if units:
        members += ",\n" * bool(members)
        members += '      "localizations" : {\n' + ",\n".join(units) + "\n      }"
    return f'    "{key}" : {{\n{members}\n    }}'


_PLURAL = """    "%lld files" : {
      "localizations" : {
        "en" : {
          "variations" : {
            "plural" : {
              "one" : {
                "stringUnit" : {
                  "state" : "new",
                  "value" : "%lld file"
                }
              },
              "other" : {
                "stringUnit" : {
                  "state" : "new",
                  "value" : "%lld files"
                }
              }
            }
          }
        }"""
_GERMAN = _PLURAL[_PLURAL.index('"en"') :].replace('"en"', '"de"').replace('"new"', '"translated"')

_CATALOG = {
    _entry("two words", ""): _entry("two words", "", "de translated TWO WORDS"),
    _entry("open é", '"comment" : "c"'): _entry("open é", '"comment" : "c"', "de translated OPEN É"),
    _entry("k.a", "", "en new %@ of %lld"): _entry("k.a", "", "en new %@ of %lld", "de translated %@ OF %lld"),
    _entry("k.b", "", "de needs_review x", 'en new \\"b\\"'): (
        _entry("k.b", "", 'de needs_review \\"B\\"', 'en new \\"b\\"')
    ),
    _entry("k.c", "", "de translated x", "en new b"): _entry("k.c", "", "de translated x", "en new b"),
    _entry("", ""): _entry("", ""),
    _entry("%@", ""): _entry("%@", ""),
    _entry("old", '"extractionState" : "stale"'): _entry("old", '"extractionState" : "stale"'),
    _entry("brand", '"shouldTranslate" : false'): _entry("brand", '"shouldTranslate" : false'),
    _PLURAL + "\n      }\n    }": f"{_PLURAL},\n        {_GERMAN.replace(' file', ' FILE').replace('FILEs', 'FILES')}"
    "\n      }\n    }",
}

CATALOG = Format(
    lambda body, _: (
        f'{{\n  "sourceLanguage" : "en",\n  "strings" : {{\n{body}\n  }},\n  "version" : "1.0"\n}}'.encode()
    ),
    _CATALOG,
    of_catalog,
    separator=",\n",
    has_targets=True,
    once=list(_CATALOG),
)

ANDROID = Format(
    lambda body, language: (
        f'<?xml version="1.0" encoding="utf-8"?>\n<resources xmlns:tools="t" tools:locale="{language}" '
        f'xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">\n{body}\n</resources>\n'
    ).encode(),
    same(
        '<string name="a">TWO WORDS</string>',
        '<string name="a" translatable="false">x</string>',
        '<string name="a">A <b>B <i>C</i></b><br/>D</string>',
        '<string name="a">FOR <xliff:g id="n" example="x">%1$s</xliff:g> ONLY</string>',
        '<string name="a">@string/b</string><string/>',
        '<plurals name="p"><item quantity="one">A</item><item quantity="other">B</item></plurals>',
        '<string-array name="p"><item>A</item><!-- c --></string-array><integer name="i">1</integer>',
    )
    | {
        '<string name="a">\n  é\n  b</string >': '<string name="a">\n  É B</string >',
        r'<string name="a">it\'s \"x\"\n\t\u0040 &amp; &lt; "q"</string>': (
            r'<string name="a">IT\'S \"X\"\n\t@ &amp; &lt; Q</string>'
        ),
        '<string name="a">"  it\'s  b "</string>': r'<string name="a">"  IT\'S  B "</string>',
        r'<string name="a">a <b>b</b>\n\nc</string>': r'<string name="a">A <b>B</b>\n\nC</string>',
        r'<string name="a"> <![CDATA[<p>a <a href="x">it\'s</a></p>]]> </string>': (
            r'<string name="a"> <![CDATA[<p>A <a href="x">IT\'S</a></p>]]> </string>'
        ),
        '<string name="a">a &lt;b>b&lt;/b&gt;</string>': '<string name="a">A &lt;b>B&lt;/b&gt;</string>',
        r'<string name="a">\u0020a\u0020\u0020<b>b</b>\u0020</string>': (
            r'<string name="a">\u0020A \u0020<b>B</b>\u0020</string>'
        ),
        r'<string name="a"><b>name:\u0020</b></string>': r'<string name="a"><b>NAME:\u0020</b></string>',
        r'<string name="a">\@you \?</string>': r'<string name="a">\@YOU ?</string>',
    },
    of_xml(read_text=unescaped),
    mixture=Mixture(
        '<string name="a">{}</string>|<plurals name="p"><item quantity="other">{}</item></plurals>',
        r"word |two words| &amp; |&lt;i>it&lt;/i> |\n|é, |it\'s |%1$s |<xliff:g id='n'>%d</xliff:g> |<br/>",
        "<b>{}</b>|<a href='x'>{}</a>|<font color='#f00'>{} </font>",
    ),
)

RESX = Format(
    lambda body, _: f'<?xml version="1.0"?>\n<root>\n{body}\n</root>\n'.encode(),
    same(
        '<data name="a" xml:space="preserve"><value>A &amp; É</value><comment>c</comment></data>',
        '<data name="a"><value> A\n B </value></data>',
        '<data name="a" type="t"><value>x</value></data>',
        '<data name="&gt;&gt;a.b"><value>x</value></data>',
        "<resheader><value>x</value></resheader>",
    ),
    of_xml(),
    variants=(crlf, marked),
)
