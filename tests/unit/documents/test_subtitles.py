"""Subtitles, read again by srt."""

import pytest
import srt
from hypothesis import given
from hypothesis import strategies as st

from service.documents import open_document
from tests.unit.documents.pseudo import texts, translated, unchanged


def _cues(*said: str) -> str:
    return "".join(f"{at}\n00:00:{at:02},000 --> 00:00:{at:02},900\n{text}\n\n" for at, text in enumerate(said, 1))


def test_a_long_translation_is_broken_where_its_longest_line_is_shortest() -> None:
    document = open_document("t.srt", b"1\n00:00:01,000 --> 00:00:02,500\r\nOne\r\ntwo")
    assert document.written(["aaaa bb cc dddd"]).endswith(b"\r\naaaa bb\r\ncc dddd")


def test_signs_of_markup_in_a_translation_are_text() -> None:
    document = open_document("t.vtt", b"WEBVTT\n\n00:01.000 --> 00:02.000\nGo\n")
    assert document.written(["a --> <b> & c"]).endswith(b"\na --&gt; &lt;b&gt; &amp; c\n")
    document = open_document("t.srt", b"1\n00:00:01,000 --> 00:00:02,500\nGo\n")
    assert document.written(["a --> b"]).endswith(b"\na -> b\n")


@given(st.lists(st.lists(st.text("ab <>i/-&{}\\", min_size=1).filter(str.strip), min_size=1, max_size=3), max_size=4))
def test_the_same_texts_give_the_same_file(cues: list[list[str]]) -> None:
    source = _cues(*map("\n".join, cues)).replace("\n", "\r\n")
    document = open_document("t.srt", source.encode())
    assert unchanged(document) == source.encode()
    assert translated(document).decode().count("-->") >= len(cues)


@pytest.mark.parametrize("ending", ["\n", "\r", "\r\n", "\r\r\n"])
@pytest.mark.parametrize(
    ("name", "has_numbers", "has_empty_lines"),
    [("t.srt", True, False), ("t.srt", False, True), ("t.vtt", True, True), ("t.vtt", False, False)],
)
def test_a_line_of_times_begins_a_cue(name: str, has_numbers: bool, has_empty_lines: bool, ending: str) -> None:
    cues = ["-0:0:1,5 --> 00:00:03.000 X1:4", "01:02.000-->01:03.000", "1:00:00:00 -> 1:00:02"]
    lines = ["WEBVTT", ""] * (name == "t.vtt")
    for number, times in enumerate(cues, start=1):
        lines += [str(number)] * has_numbers + [times, "Open it."] + [""] * has_empty_lines
    source = "".join(line + ending for line in lines)
    assert translated(open_document(name, source.encode())).decode() == source.replace("Open it.", "OPEN IT.")


def test_what_is_no_cue_stays_with_a_note() -> None:
    source = "By me\n\n1\n0:01 --> 0:02\nOpen it,\n\nand go.\n\n2\nabc --> def\nOdd\n\n3\nNo times\n\n"
    source += "4\n0:03 --> 0:04\n\nSo.\n\nThe End\n"
    document = open_document("t.srt", source.encode())
    assert texts(document) == ["Open it, and go.", "So."]
    assert list(document.notes) == [
        "lines outside cues, such as a cue without times, were left as they are: line 1, 9, 13, 21."
    ]
    assert document.written(["Geh hinaus, jetzt.", "So."]).decode() == source.replace(
        "Open it,", "Geh hinaus,"
    ).replace("and go.", "jetzt.")
    vtt = open_document("t.vtt", b"WEBVTT\n\nNOTE x\n\n0:01 --> 0:02\nHi\n\nSTYLE\ny\n\nafter an empty line\n")
    assert (texts(vtt), len(vtt.notes)) == (["Hi"], 1)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (["I never thought that", "we would see London", "again. It is late."], None),
        (["He was in", "London, in the", "Hotel."], None),  # capitals behind words that are never last
        (["Well,", "Peter."], None),
        (["क्या आपने कभी", "सोचा था?"], None),
        (["Open the door.", "and go"], ["Open the door.", "and go"]),
        (["Open the door", "Close the window"], ["Open the door", "Close the window"]),
        (["Are you", "- no", "-5 degrees"], ["Are you", "no", "-5 degrees"]),
        (["- Hi.\n- Hello,", "you."], ["Hi.", "Hello, you."]),
        (["♪ la la ♪", "over there"], ["la la", "over there"]),
        ([">> Hello", ">> there"], ["Hello", "there"]),
        (
            ["When I saw", "Paris,", "London.", "It was.", "So.", "I slept."],
            ["When I saw Paris, London.", "It was.", "So.", "I slept."],
        ),
        (["He had 5.", "I had", "5 apples."], ["He had 5.", "I had 5 apples."]),
        (["we see", "[door opens]", "..."], ["we see", "[door opens]"]),
        (["ANNA: come\nJOHN: no"], ["come", "no"]),
        (["我从来没想过", "我们会见到", "好"], ["我从来没想过", "我们会见到", "好"]),  # nothing tells what ends
        (["ANNA SMITH: when we", "ANNA SMITH: open it,", "go"], ["when we open it, go"]),
        (["ANNA: see, in", "in", "TOM: the", "TOM: day"], ["see, in in", "the day"]),
        (["ANNA: a,\nTOM:\n- b", "- ANNA: c"], ["a,", "b", "c"]),
        (["LEO [SINGS]: no"], ["[SINGS]: no"]),
        (["ANNA: no"], ["ANNA: no"]),
        (
            ["good day and", "good day and\nhere is", "here is\nthe news"],
            ["good day and"] * 2 + ["here is"] * 2 + ["the news"],
        ),
        (["the old\nhouse", "the old\nhouse", "here"], ["the old house", "the old house", "here"]),
    ],
)
def test_a_sentence_over_several_cues_is_a_text(said: list[str], expected: list[str] | None) -> None:
    document = open_document("t.srt", _cues(*said).encode())
    assert texts(document) == (expected or [" ".join(said)])
    assert translated(document).decode() == _cues(*said).upper()  # word for word, so each where it was


@pytest.mark.parametrize(
    ("said", "translation", "expected"),
    [
        (
            ["I never thought that", "we would.", "It is"],
            "Nie dachte ich ja, wir würden.",
            ["Nie dachte ich ja,", "wir würden."],
        ),
        (["<i>I never</i>", "<i>{\\an8}thought</i>"], "Nie dachte", ["<i>Nie</i>", "<i>{\\an8}dachte</i>"]),
        (["I know", "that"], "Weiß", ["Weiß", "Weiß"]),  # no cue is empty
        (["I never thought", "we would see"], "我从来没想过，我们会见到。", ["我从来没想过，", "我们会见到。"]),
        (
            ["I never thought\nwe would see"],
            "我从来没想过，我们会见到 London 了。",
            ["我从来没想过，我们会\n见到 London 了。"],
        ),
        (["I saw", "him, the", "man"], "Ich", ["Ich", "Ich", "Ich"]),
    ],
)
def test_its_translation_is_laid_back_over_the_cues(said: list[str], translation: str, expected: list[str]) -> None:
    document = open_document("t.srt", _cues(*said).encode())
    rest = texts(document)[1:]
    written = list(srt.parse(document.written([translation, *rest]).decode()))
    assert [cue.content for cue in written][: len(expected)] == expected


def test_a_pair_of_tags_over_the_end_of_a_cue_is_closed_and_opened_again() -> None:
    document = open_document("t.srt", _cues("I saw <i>the", "man</i> there", "so <b>he</b>", "<b>was</b> it").encode())
    told, *_ = texts(document)
    assert told == 'I saw <img id="1">the man<img id="3"> there so <span id="5">he</span> <span id="9">was</span> it'
    written = document.written(['<span id="5">eins zwei drei vier</span>']).decode()
    assert [cue.content for cue in srt.parse(written)] == [
        "<b>eins</b>", "<b>zwei</b>", "<b>drei</b>", "<b>vier</b><i></i>",
    ]  # fmt: skip


def test_voices_and_ruby_of_webvtt() -> None:
    source = "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Bob>Open it\n<v Ann>Close <v Bob>No</v>\n\n"
    source += "00:03.000 --> 00:04.000\n<ruby>old<rt>OLD</rt></ruby> house\n"
    document = open_document("t.vtt", source.encode())
    assert texts(document) == ["Open it", "Close", "No", '<span id="0">old<img id="2"></span> house']
    assert translated(document).decode() == source.replace("Open it", "OPEN IT").replace("Close", "CLOSE").replace(
        ">No<", ">NO<"
    ).replace("old<", "OLD<").replace("house", "HOUSE")
