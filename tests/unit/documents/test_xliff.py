"""XLIFF, read again by lxml."""

import html

import pytest
from lxml import etree

from service.documents import DocumentError, DocumentOptions, Doubt, open_document
from tests.unit.documents.pseudo import texts, translated, unchanged

GERMAN = DocumentOptions(target="de")
FIRST = """<?xml version="1.0" encoding="UTF-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
  <file original="a" source-language="en" datatype='plaintext'><body>
    <trans-unit id="1">
      <source>Find the keys</source>
    </trans-unit>
    <trans-unit id="2"><source>window</source><target state="needs-translation">x</target></trans-unit>
    <trans-unit id="3"><source>done</source><target>fertig</target></trans-unit>
    <trans-unit id="4"><source>A word</source><target/></trans-unit>
  </body></file>
</xliff>
"""
SECOND = """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en">
 <file id="f"><unit id="1">
  <segment id="s"><source>Find <pc id="1">the keys</pc> now</source></segment>
  <segment state="translated"><source>done</source><target>fertig</target></segment>
  <segment state="initial" subState="x:y"><source>A door</source><target>t</target></segment>
 </unit></file>
</xliff>
"""


def test_the_same_words_are_a_translation_too() -> None:
    for source, lines in ((FIRST, (5, 7, 9)), (SECOND, (3, 5))):
        document = open_document("a.xlf", source.encode(), GERMAN)
        assert [text.place for text in document.texts] == [f"line {number}" for number in lines]
        assert not texts(open_document("a.xlf", unchanged(document), GERMAN))


def test_finished_targets_are_translated_again_if_that_is_asked_for() -> None:
    document = open_document("a.xlf", FIRST.encode(), DocumentOptions(has_all=True))
    assert b"DONE</target>" in translated(document)


def test_utf_16_and_prefixes_stay() -> None:
    source = SECOND.replace("<", "<x:").replace("<x:/", "</x:").replace("xmlns=", "xmlns:x=").encode("utf-16")
    written = translated(open_document("a.xlf", source, GERMAN))
    assert '<x:target>FIND <x:pc id="1">THE KEYS</x:pc> NOW</x:target>' in written.decode("utf-16")


def unit(source: str, **attributes: str) -> bytes:
    """Return a file of 1.2 with one unit, and the attributes of that file."""
    named = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in attributes.items())
    content = f"<trans-unit><source>{source}</source></trans-unit>"
    return f'<xliff version="1.2"><file{named}><body>{content}</body></file></xliff>'.encode()


def test_every_tag_comes_back_exactly_once_whatever_a_translator_does() -> None:
    document = open_document("a.xlf", unit('a <g id="1">b</g> <x id="2"/>c'))
    for translation in ("<b>z</b>", 'z<span id="1">y<span id="1">w</span></span><img id="5"><img id="5">', "</span>"):
        target = etree.fromstring(document.written([translation])).find(".//target")
        assert sorted(each.tag for each in target.iter()) == ["g", "target", "x"]


def test_what_xml_cannot_have_is_left_out() -> None:
    written = open_document("a.xlf", unit("a")).written(["x\0\x0b\ud800 < \uffff & ]]> \U0001f355"])
    assert etree.fromstring(written).findtext(".//target") == "x <  & ]]> \U0001f355"


SUP = '<g id="1" ctype="x-sup">2</g>'


@pytest.mark.parametrize(
    ("source", "told", "written"),
    [
        ("\n  one\n  two <x id='1'/>\n three \n", 'one two <img id="1"> three', "\n  ONE TWO <x id='1'/> THREE \n"),
        ("one<ph id='1'>&lt;br/></ph>two", 'one<br id="1">two', "ONE<ph id='1'>&lt;br/></ph>TWO"),
        ("one<x id='LINE_BREAK_1'/>two", 'one<br id="1">two', "ONE<x id='LINE_BREAK_1'/>TWO"),
        ("10 m" + SUP + " now", '10 m<sup id="1">2</sup> now', "10 M" + SUP + " NOW"),
        ("a\tb", 'a<br id="1">b', "A\tB"),
        ("<g id='1'>a</g> <g id='2'>b</g>", '<span id="0">a</span><br id="3"><span id="4">b</span>', None),
        ("{n, plural, other {# a <x id='1'/>}}", None, "{n, plural, other {# A <x id='1'/>}}"),
    ],
)
def test_what_stays_and_what_separates_in_a_source(source: str, told: str | None, written: str | None) -> None:
    document = open_document("a.xlf", unit(source))
    assert told is None or texts(document) == [told]
    assert written is None or f">{written}</target>" in translated(document).decode()


def test_white_space_that_is_to_be_kept_is() -> None:
    source = unit("one\r\n two").replace(b"<trans-unit", b'<trans-unit xml:space="preserve"')
    document = open_document("a.xlf", source)
    assert texts(document) == ["one\n two"]
    assert b">ONE\r\n TWO</target>" in translated(document)


@pytest.mark.parametrize(
    ("original", "state", "expected"),
    [("a.strings", "translated", "%2$d von %1$s"), ("a.c", "needs-review-translation", "%d von %s")],
)
def test_arguments_in_another_order_are_numbered_or_to_be_reviewed(original: str, state: str, expected: str) -> None:
    document = open_document("a.xlf", unit("%s of %d", original=original))
    written = document.written(['<code id="2">%d</code> von <code id="0">%s</code>']).decode()
    assert f'<target state="{state}" state-qualifier="mt-suggestion">{expected}<' in written


def test_a_translation_in_doubt_is_to_be_reviewed() -> None:
    doubts = {0: Doubt(("term", "empty")), 1: Doubt((), "length")}
    first = open_document("a.xlf", FIRST.encode(), GERMAN).written(["A", "B", "C"], doubts)
    states = [each.get("state") for each in etree.fromstring(first).iter("{*}target")]
    assert states == ["needs-review-translation", "needs-review-translation", None, "translated"]
    second = etree.fromstring(open_document("a.xlf", SECOND.encode(), GERMAN).written(["A", "B"], doubts))
    found = [(each.get("state"), each.get("subState")) for each in second.iter("{*}segment")]
    assert found == [("initial", "dragoman:term"), ("translated", None), ("initial", "dragoman:length")]


def test_a_translation_that_was_approved_is_so_no_longer() -> None:
    source = (
        unit("a</source><target>b")
        .replace(b"<trans-unit", b"<trans-unit approved='yes'")
        .replace(b"b</source>", b"b</target>")
    )
    assert texts(open_document("a.xlf", source)) == []
    written = translated(open_document("a.xlf", source, DocumentOptions(has_all=True)))
    assert b'approved="no"><source>a</source><target state="translated"' in written


def test_files_of_other_languages_stay_as_they_are() -> None:
    other = unit("b", target_language="fr").partition(b"<file")[2].partition(b"</xliff>")[0]
    source = unit("a", target_language="de").replace(b"</xliff>", b"<file" + other + b"</xliff>")
    document = open_document("a.xlf", source, GERMAN)
    assert texts(document) == ["a"]
    assert len(document.notes) == 1
    assert b"<file" + other in translated(document)


@pytest.mark.parametrize(("found", "asked", "is_read"), [("fr", "en", False), ("en-US", "en", True), ("fr", "", True)])
def test_sources_of_another_language_are_not_translated(found: str, asked: str, is_read: bool) -> None:
    second = "<file><unit><segment><source>a</source></segment></unit></file></xliff>"
    second = f'<xliff version="2.0" srcLang="{found}">{second}'
    for source in (unit("a", source_language=found), second.encode()):
        if is_read:
            document = open_document("a.xlf", source, DocumentOptions(source=asked))
            assert (texts(document), document.language) == (["a"], found)
        else:
            with pytest.raises(DocumentError, match=r"(source-language|srcLang) is 'fr', and the source language was"):
                open_document("a.xlf", source, DocumentOptions(source=asked))


@pytest.mark.parametrize(
    ("encoding", "codec", "prefix"),
    [
        ("windows-1252", "cp1252", b""),
        ("ISO-8859-15", "iso8859-15", b""),
        ("Shift_JIS", "shift_jis", b""),
        ("UTF-16", "utf-16-le", b"\xff\xfe"),
        ("UTF-16", "utf-16-be", b""),
        ("utf-16", "utf-8", b""),
        ("UTF-8", "utf-8", b"\xef\xbb\xbf"),
        ("us-ascii", "ascii", b""),
    ],
)
def test_the_encoding_of_the_declaration_is_believed(encoding: str, codec: str, prefix: bytes) -> None:
    declaration = f'<?xml version="1.0" encoding="{encoding}"?>\n<!DOCTYPE xliff SYSTEM "xliff.dtd">\n'
    text = {"shift_jis": "\u8868", "ascii": "cafe"}.get(codec, "caf\u00e9")
    source = prefix + (declaration + unit(text).decode()).encode(codec)
    document = open_document("a.xlf", source)
    assert texts(document) == [text]
    written = document.written([f"{text} \U0001f355 \u0416"])
    assert written.startswith(prefix)
    assert f"{text} \U0001f355 \u0416" in html.unescape(written.removeprefix(prefix).decode(codec))
    assert written.removeprefix(prefix).decode(codec).startswith(declaration)


@pytest.mark.parametrize(
    ("asked", "found", "written"),
    [
        *(("DE", "", "de"), ("pt_br", "", "pt-BR"), ("eng_Latn", "", "en"), ("zh_Hant", "", "zh-Hant"), ("", "", None)),
        # the same language by another name stays
        *(("DE", "de-AT", "de-AT"), ("pt_br", "pt", "pt"), ("zh", "cmn", "cmn"), ("deu_Latn", "de", "de")),
        ("fr", "fr-CA", "fr-CA"),
        ("de", "fr-CA", "refused"),
    ],
)
def test_the_language_of_the_targets_is_written_in_bcp_47(asked: str, found: str, written: str | None) -> None:
    options = DocumentOptions(target=asked)
    source = FIRST.replace("datatype", f'target-language="{found}" datatype' if found else "datatype").encode()
    if written == "refused":
        message = r"^line 3: its target-language is 'fr-CA', and the target language is 'de'"
        with pytest.raises(DocumentError, match=message):
            open_document("a.xlf", source, options)
        return
    first = etree.fromstring(translated(open_document("a.xlf", source, options)))
    assert [each.get("target-language") for each in first.iter("{*}file")] == [written]
    if not found:
        second = etree.fromstring(translated(open_document("a.xlf", SECOND.encode(), options)))
        assert second.get("trgLang") == written
