"""Subtitles, read again by srt and webvtt-py."""

import io

import pytest
import srt
import webvtt
from hypothesis import given
from hypothesis import strategies as st

from service.documents import DocumentError, open_document
from tests.unit.documents.pseudo import texts, translated, unchanged

SRT = """1
00:00:01,000 --> 00:00:02,500
<i>Where is the
train</i> station?

2
00:00:03,000 --> 00:00:04,000 X1:1
- Hello.
- {\\an8}Close the window.

3
00:00:05,000 --> 00:00:06,000
...
"""
VTT = """WEBVTT - a title

STYLE
::cue { color: red }

NOTE a file
of notes

intro
00:01.000 --> 00:02.000 line:0 align:start
<v Bob>Find <c.red>the keys</c> &amp; go
<00:01.500>home

01:00:03.000 --> 01:00:04.000
Close
"""


def test_a_cue_is_a_text_and_keeps_its_number_of_lines() -> None:
    document = open_document("t.srt", SRT.encode())
    assert texts(document) == [
        '<span id="0">Where is the train</span> station?',
        '- Hello.<br id="1">- <img id="3">Close the window.',
    ]
    before, after = list(srt.parse(SRT)), list(srt.parse(translated(document).decode()))
    assert [(cue.index, cue.start, cue.end, cue.proprietary) for cue in after] == [
        (cue.index, cue.start, cue.end, cue.proprietary) for cue in before
    ]
    assert [cue.content for cue in after] == [
        "<i>WHERE IS THE\nTRAIN</i> STATION?",
        "- HELLO.\n- {\\an8}CLOSE THE WINDOW.",
        "...",
    ]


def test_a_long_translation_is_broken_where_its_longest_line_is_shortest() -> None:
    document = open_document("t.srt", b"1\n00:00:01,000 --> 00:00:02,500\r\nOne\r\ntwo")
    assert document.written(["aaaa bb cc dddd"]).endswith(b"\r\naaaa bb\r\ncc dddd")


@pytest.mark.parametrize(("name", "source"), [("t.srt", SRT), ("t.vtt", VTT)])
@pytest.mark.parametrize("ending", ["\r\n", "\n"])
def test_line_ends_stay_as_they_are(name: str, source: str, ending: str) -> None:
    written = translated(open_document(name, source.replace("\n", ending).encode()))
    assert written == translated(open_document(name, source.encode())).replace(b"\n", ending.encode())
    assert written.count(b"\n") == source.count("\n")


def test_settings_notes_and_styles_of_webvtt_stay() -> None:
    document = open_document("t.vtt", VTT.encode())
    written = translated(document).decode()
    assert written.partition("intro")[0] == VTT.partition("intro")[0]
    assert "intro\n00:01.000 --> 00:02.000 line:0 align:start\n<v Bob>FIND <c.red>" in written
    cues = webvtt.from_buffer(io.StringIO(written)).captions
    assert [(cue.start, cue.end, cue.text) for cue in cues] == [
        ("00:00:01.000", "00:00:02.000", "FIND THE KEYS\n&amp; GO HOME"),
        ("01:00:03.000", "01:00:04.000", "CLOSE"),
    ]


def test_signs_of_markup_in_a_translation_are_text() -> None:
    document = open_document("t.vtt", b"WEBVTT\n\n00:01.000 --> 00:02.000\nGo\n")
    assert document.written(["a --> <b> & c"]).endswith(b"\na --&gt; &lt;b&gt; &amp; c\n")
    document = open_document("t.srt", b"1\n00:00:01,000 --> 00:00:02,500\nGo\n")
    assert document.written(["a --> b"]).endswith(b"\na -> b\n")


@given(st.lists(st.lists(st.text("ab <>i/-&{}\\", min_size=1).filter(str.strip), min_size=1, max_size=3), max_size=4))
def test_the_same_texts_give_the_same_file(cues: list[list[str]]) -> None:
    source = "".join(
        f"{number}\r\n00:00:0{number},000 --> 00:00:0{number},900\r\n"
        + "".join(f"{line}\r\n" for line in lines)
        + "\r\n"
        for number, lines in enumerate(cues, start=1)
    )
    document = open_document("t.srt", source.encode())
    assert unchanged(document) == source.encode()
    assert translated(document).decode().count("-->") >= len(cues)


@pytest.mark.parametrize(
    ("name", "source", "message"),
    [
        ("t.srt", "1\n00:00:01,000 -> 00:00:02,500\nGo\n", "^line 2: expected the times of a cue"),
        ("t.srt", "\n\nGo\n", "^line 3: expected the times of a cue.*not 'Go'"),
        ("t.vtt", "1\n00:01.000 --> 00:02.000\nGo\n", "^line 1: a WebVTT file starts with WEBVTT"),
        ("t.vtt", "WEBVTT\n\n00:01 --> 00:02\nGo\n", "^line 3: expected the times of a cue"),
        ("t.vtt", "WEBVTT\n\nid\n", "^line 3: expected the times of a cue"),
    ],
)
def test_a_broken_file_gets_an_error_with_its_line(name: str, source: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        open_document(name, source.encode())
