"""Plain text, HTML, tables and subtitles."""

import re

from service.documents import DocumentOptions
from tests.unit.documents.formats.format import Format, Mixture, crlf, in_utf_16, marked, same
from tests.unit.documents.formats.markup_readers import of_html, of_timed_text
from tests.unit.documents.formats.readers import of_ass, of_csv, of_lines, of_rst, of_srt, of_tsv, of_vtt, told
from tests.unit.documents.pseudo import served

COLUMN = DocumentOptions(columns=("text",), target="de")

TEXT = Format(
    lambda body, _: f"{body}\n".encode(),
    same("TWO WORDS", "  A  ", "", "\tÄ B\t", "12 %", "END. HÉ?", "{N, PLURAL, ONE {# A} OTHER {# B}}"),
    of_lines,
    variants=(crlf, marked, in_utf_16, lambda data: data.replace(b"\n", b"\r")),
)

_CELLS = same('1,"HE SAID ""GO"", AND",x', "2,TWO WORDS,keep", "3,12,y", "4,,y", "", '"5","A\nB",y', "7,É,y,z", "8")

CSV = Format(
    lambda body, _: f"id,text,note\n{body}\n".encode(),
    _CELLS,
    of_csv,
    variants=(
        *(crlf, marked, in_utf_16),
        lambda data: b"sep=,\n" + data,
        lambda data: data.replace(b",", b";"),
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

RST = Format(
    lambda body, _: f"{body}\n".encode(),
    same(
        "AB\n==",
        "1.2\n===",
        "###\n AB\n###",
        "A *B* **C D** ``left`` [1]_ |one| `E <http://x.y>`_ `one`:two: http://l.e/f_ E\\ *F*\\ G 5 * 3 \\*H\\* one_",
        "* A\n* B\n\n  1. C\n  #. - D",
        "A\n  B\n\nC : one\n  D",
        "A::\n\n   left\n\n  left",
        "::\n\n  left",
        "A::\n\n> left\n> left",
        ":param one: A\n:type one: two",
        "| A\n| B",
        "-a, --left=x  A\n-l  B",
        ".. note:: A\n   :class: one\n\n   B",
        ".. admonition:: A\n\n   B\n\n   .. tip:: C",
        ".. figure:: one.png\n   :alt: A B\n   :width: 5\n\n   C",
        ".. code:: one\n   :caption: A\n\n   left\n\nB",
        ".. versionadded:: 1.5 A\n\n.. deprecated:: 1\n   B",
        ".. function:: one(l)\n              two(l)\n   :noindex:\n\n   A",
        ".. one:: left\n\n   left",
        ".. glossary::\n   :l:\n\n   left\n   one : l\n      A\n\n      - B::\n\n          l\n   .. l\n      one\n\nC",
        '.. csv-table:: A\n   :header: "B", "C"\n   :widths: 1, 2\n\n   "D, ""E""", 5, "F *G* ``l``"\n   - l, "", "H"',
        ".. csv-table::\n   :delim: ;\n\n   left; one",
        '.. csv-table::\n\n   "left\n   left", one',
        ".. left\n   left\n\n.. _one: http://l.e\n\n.. |one| replace:: left\n\n__ left",
        ".. |one| image:: two.png\n   :alt: A B\n   :width: 5",
        ".. [1] A\n.. [#l] B",
        ".. [1] === ===\n       a   b\n       === ===\n\n.. [2] :one: A\n\n.. note:: :one: two\n\n   B",
        "- \n  A\n- \n  B",
        "+---+---+\n| l | e |\n+---+---+",
        "=== ===\nl   e\n=== ===\nf   t\n=== ===",
        ">>> left\nleft\n left",
        "* A\n\n    B\n\n    -- C",
        "A `B <one>`__ :ref:`C <one>` :ref:`one` :doc:`D\n</one>` :py:mod:`one`".replace("\n", " "),
        "A :one:`left`` B `one`` C",
        "----",
    )
    | {
        "two\nlines": "TWO LINES",
        "a. one\ntwo": "\\A. ONE TWO",
        "#. one\n   two\n#.\n   a": "#. ONE\n   TWO\n#.\n   A",
        "a `b c`_ d_": "A `B C <b c_>`__ d_",
        ".. tip:: a\n   b\n\n    c": ".. tip:: A\n   B\n\n    C",
        "``l`` a\n-----": "``l`` A\n-------",
        "äß\n~~": "ÄSS\n~~~",
    },
    of_rst,
    separator="\n\n",
    variants=(crlf, marked),
    outline_of_damaged=lambda data: [told(re.sub(r"[\W_]+", "", each)) for _, each in of_rst(data)],
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
        "<svg aria-label='A'><text>a</text><path d='M0'/></svg><math><mi>x</mi></math>",
        "<meta property='og:title' content='THE \"OLD\" DOOR'><p>SEE <b title='MY &quot;KEY&quot;'>IT</b></p>",
        "<p translate=no title=x>y</p><b title=x class=notranslate>y</b><b aria-label='<?= x ?>'></b><link title=x>",
    )
    | {"<a title=help>a</a><input type=reset value=go>": '<a title="HELP">A</a><input type=reset value="GO">'},
    of_html,
    variants=(crlf, marked),
    mixture=Mixture(
        "<p>{}</p>|<div>{}<p>{}</p>{}</div>|<ul><li>{}<li>{}</ul>|<h2>{}</h2>|{}<hr>{}|<p translate=no>{}</p>{}"
        "|<table><tr><td>{}<td>{}</table>|<blockquote>{}</blockquote>",
        "word |two words|, |. Then |<br>|<img src=a alt='a b'>|<code>x</code> |<wbr>|é |\n|m<sup>2</sup> "
        "|H<sub>2</sub>O |<sup>[1]</sup> | &amp; |&nbsp;|{{ x }} |<!-- c -->|<input placeholder=Name>|5 &lt; 6 "
        "|<svg><path d='M0'/></svg>",
        "<b>{}</b>|<i class=x>{} </i>|<a href=y title='a b'>{}</a>|<span> {}</span>|<b translate=no>{}</b>",
    ),
    options=DocumentOptions(target="de", attributes=True),
    translate=served,
)

_CUES = (
    *("1\n@\nTWO WORDS.\n", "2\n@\n<i>WHERE IS THE\nTRAIN</i> STATION?\n", "3\n@\n- HELLO.\n- CLOSE IT.\n"),
    *("4\n@\n...\n", "5\n@\nANNA: COME.\n", "6\n@\n♪ LA LA ♪\n"),
    *("7\n@\nI NEVER THOUGHT THAT\n\n8\n@\nWE WOULD SEE IT.\n", "9\n@\n[DOOR OPENS]\n"),
)
_INTRO = "intro\n00:01.000 --> 00:02.000 line:0 align:start\n<v Bob>"

SRT = Format(
    lambda body, _: f"{body}\n".encode(),
    same(*(each.replace("@", "00:00:01,000 --> 00:00:02,000") for each in _CUES))
    | same("1\n00:00:03,000 --> 00:00:04,000 x1:1\n{\\an8}CLOSE <b>THE</b> WINDOW.\n"),
    of_srt,
    variants=(crlf, marked, in_utf_16),
)
VTT = Format(
    lambda body, _: f"WEBVTT - a title\n\n{body}\n".encode(),
    same(*(each.replace("@", "00:00:01.000 --> 00:00:02.000") for each in _CUES))
    | same(
        "00:01.000 --> 00:02.000\n<v bob>OPEN IT.\n<v ann>CLOSE <b>IT</b>.\n",
        "00:03.000 --> 00:04.000\n<ruby>OLD<rt>x</rt></ruby> HOUSE.\n",
        "00:05.000 --> 00:06.000\n&nbsp;\nWHERE IS\n&nbsp;\nTHE <i>TRAIN</i>?  \n<i> </i>\n",
    )
    | {each: each for each in ("NOTE a file\nof notes\n", "STYLE\n::cue { color: red }\n", "REGION\nid:a\n")}
    | {
        f"{_INTRO}find <c.red>the keys</c> &amp; go\n<00:01.500>home.\n": (
            f"{_INTRO}FIND <c.red>THE KEYS</c>\n&amp; GO <00:01.500>HOME.\n"
        )
    },
    of_vtt,
    variants=(crlf, marked),
)


def _event(said: str, number: int = 0) -> str:
    return f"Dialogue: 0,0:00:0{number}.00,0:00:09.00,Default,,0,0,0,,{said}"


ASS = Format(
    lambda body, _: (
        "[Script Info]\nTitle: a title\n\n[Events]\n"
        f"Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n{body}\n"
    ).encode(),
    {
        _event(said.lower().replace("\\n", "\\N"), number): _event(said, number)
        for number, said in enumerate(
            (
                *("TWO WORDS.", "{\\i1}WHERE IS THE\\NTRAIN{\\i0} STATION?", "{\\an8}- HELLO.\\N- CLOSE IT."),
                *("ANNA: COME, NOW.", "FIND {\\b1}THE{\\b0} KEYS", "♪ LA LA ♪", "A\\hFEW {}WORDS.", "A\\N\\NB"),
                "THE OLD DOOR IS OPEN.\\NCLOSE IT NOW.",
            )
        )
    }
    | {f"  {_event('go')}": f"  {_event('GO')}"}
    | {_event("{\\p1}m 0 0 l 9 0{\\p0}a"): _event("{\\p1}m 0 0 l 9 0{\\p0}A")}
    | {_event(each): _event(each) for each in ("{\\p1}m 0 0 l 9 0", "{a note}12 %")}
    | {each: each for each in ("Comment: 0,0:00:00.00,0:00:01.00,A,,0,0,0,,a note", "; a comment", "Dialogue: 0,a")},
    of_ass,
    variants=(crlf, marked, in_utf_16),
)

TIMED_TEXT = Format(
    lambda body, language: (
        '<?xml version="1.0"?>\n<tt:tt xmlns:tt="http://www.w3.org/ns/ttml" xmlns:ttm="m" xml:lang="'
        f'{language}"><tt:head><ttm:title>é</ttm:title></tt:head><tt:body><tt:div>\n{body}\n'
        "</tt:div></tt:body></tt:tt>\n"
    ).encode(),
    same(
        '<tt:p begin="1s" end="2s">TWO &amp; WORDS.</tt:p>',
        '<tt:p begin="1s">\n  WHERE IS THE<tt:br/>\n  TRAIN STATION?\n</tt:p>',
        '<tt:p begin="1s">- HELLO.<tt:br></tt:br>- CLOSE <tt:span a="b>c">IT</tt:span>. <!-- a note --></tt:p>',
        '<tt:p xml:space="preserve">IT IS\nOLD.</tt:p>',
        "<tt:p><tt:set begin='1s'/><tt:span>É</tt:span></tt:p><tt:p>12 %</tt:p>",
        "<tt:p><![CDATA[a]]></tt:p>",
        "<tt:p><tt:metadata><ttm:desc>a</ttm:desc></tt:metadata>b</tt:p>",
        "<tt:p><tt:metadata><ttm:desc>a</ttm:desc></tt:metadata></tt:p>",
        "<tt:p><tt:span>♪ <tt:span>- LA<tt:br/>LA</tt:span> <tt:br/>- NO ♪</tt:span></tt:p>",
    ),
    of_timed_text,
    variants=(crlf, marked, in_utf_16),
    mixture=Mixture(
        "<tt:p>{}</tt:p>|<tt:p begin='1s'>{}<tt:br/>{}</tt:p>",
        "word |two words|, |. Then | &amp; |é, |12 |<tt:br/>|<!-- a -->|- ",
        "<tt:span>{}</tt:span>|<tt:span tts='b'> {}</tt:span>",
    ),
)
