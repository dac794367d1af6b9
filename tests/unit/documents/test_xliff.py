"""XLIFF, read again by lxml."""

import pytest
from lxml import etree

from service.documents import DocumentError, DocumentOptions, open_document
from tests.unit.documents.pseudo import texts, translated, unchanged

GERMAN = DocumentOptions(target="de")
FIRST = """<?xml version="1.0" encoding="UTF-8"?>
<!-- a comment -->
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2" xmlns:o='urn:other'>
  <file original="a" source-language="en" datatype='plaintext'><body><group>
    <trans-unit id="1" o:x='y'>
      <source>Find <g id="1">the <x id="2"/>keys</g> &amp; <ph id="3">%s</ph>go <mrk
 mtype="protected">XR-7</mrk></source>
      <note>a note</note>
    </trans-unit>
    <trans-unit id="2"><source>window</source><target state="needs-translation" o:k="v">x</target></trans-unit>
    <trans-unit id="3"><source>done</source><target>fertig</target></trans-unit>
    <trans-unit id="4" translate="no"><source>no</source></trans-unit>
    <trans-unit id="5"><source>A <bpt id="1">{b}</bpt>bold<ept id="1">{/b}</ept> word</source><target/>
      <alt-trans><source>other</source><target>anders</target></alt-trans></trans-unit>
    <trans-unit id="6"><source>12</source></trans-unit>
  </group></body></file>
</xliff>
"""
SECOND = """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en">
 <file id="f"><unit id="1">
  <originalData><data id="d">{}</data></originalData>
  <segment id="s">
   <source>Find <pc id="1">the keys</pc> <ph id="2" dataRef="d"/> now</source>
  </segment>
  <ignorable><source> </source></ignorable>
  <segment state="translated"><source>done</source><target>fertig</target></segment>
  <segment state="initial" subState="x:y"><source>A <sc id="3"/>door<ec startRef="3"/></source><target>t</target>
  </segment>
 </unit><unit id="2" translate="no"><segment><source>no</source></segment></unit></file>
</xliff>
"""


def everything(data: bytes) -> list[tuple[str, dict[str, str]]]:
    """Return all elements but targets, with their attributes but those that a translation sets."""
    root = etree.fromstring(data)
    states = {"state", "subState", "target-language", "trgLang"}
    return [
        (element.tag, {key: value for key, value in element.attrib.items() if key not in states})
        for element in root.iter("{*}*")
        if not any(each.tag.endswith("}target") for each in (element, *element.iterancestors()))
    ]


def targets(data: bytes) -> list[str]:
    found = etree.fromstring(data).iter("{*}target")
    return [etree.tostring(each, encoding="unicode", with_tail=False).partition(">")[2] for each in found]


def test_sources_of_1_2_become_targets_with_a_state() -> None:
    document = open_document("a.xlf", FIRST.encode(), GERMAN)
    assert texts(document) == [
        'Find <span id="1">the <img id="3">keys</span> &amp; <img id="7">go <code id="9">XR-7</code>',
        "window",
        'A <span id="1">bold</span> word',
    ]
    assert [text.place for text in document.texts] == ["line 6", "line 10", "line 13"]
    written = translated(document)
    assert everything(written) == everything(FIRST.encode())
    assert targets(written) == [
        'FIND <g id="1">THE <x id="2"/>KEYS</g> &amp; <ph id="3">%s</ph>GO <mrk mtype="protected">XR-7</mrk></target>',
        "WINDOW</target>",
        "fertig</target>",
        'A <bpt id="1">{b}</bpt>BOLD<ept id="1">{/b}</ept> WORD</target>',
        "anders</target>",
    ]
    root = etree.fromstring(written)
    states = [(each.get("state"), each.get("state-qualifier")) for each in root.iter("{*}target")]
    done = ("translated", "mt-suggestion")
    assert states == [done, done, (None, None), done, (None, None)]
    assert root.find("{*}file").get("target-language") == "de"
    assert b'\n      <target state="translated"' in written
    assert b'<target o:k="v" state="translated"' in written


def test_segments_of_2_0_become_targets_with_a_state() -> None:
    document = open_document("a.xliff", SECOND.encode(), GERMAN)
    assert texts(document) == [
        'Find <span id="1">the keys</span> <img id="5"> now',
        'A <span id="1">door</span>',
    ]
    written = translated(document)
    assert everything(written) == everything(SECOND.encode())
    root = etree.fromstring(written)
    assert root.get("trgLang") == "de"
    segments = [(each.get("state"), each.get("subState")) for each in root.iter("{*}segment")]
    assert segments == [("translated", None)] * 3 + [(None, None)]
    assert targets(written) == [
        'FIND <pc id="1">THE KEYS</pc> <ph id="2" dataRef="d"/> NOW</target>',
        "fertig</target>",
        'A <sc id="3"/>DOOR<ec startRef="3"/></target>',
    ]


def test_the_same_words_are_a_translation_too() -> None:
    for source in (FIRST, SECOND):
        written = unchanged(open_document("a.xlf", source.encode(), GERMAN))
        assert everything(written) == everything(source.encode())
        assert not texts(open_document("a.xlf", written, GERMAN))


def test_finished_targets_are_translated_again_if_that_is_asked_for() -> None:
    document = open_document("a.xlf", FIRST.encode(), DocumentOptions(has_all=True))
    assert "DONE</target>" in targets(translated(document))


def test_utf_16_and_prefixes_stay() -> None:
    source = SECOND.replace("<", "<x:").replace("<x:/", "</x:").replace("xmlns=", "xmlns:x=").encode("utf-16")
    written = translated(open_document("a.xlf", source, GERMAN))
    assert targets(written)[0].startswith('FIND <x:pc id="1">THE KEYS</x:pc>')


def test_every_tag_comes_back_exactly_once_whatever_a_translator_does() -> None:
    source = '<xliff version="1.2"><file><body><trans-unit><source>a <g id="1">b</g> <x id="2"/>c</source></trans-unit>'
    document = open_document("a.xlf", f"{source}</body></file></xliff>".encode())
    for translation in ("<b>z</b>", 'z<span id="1">y<span id="1">w</span></span><img id="5"><img id="5">', "</span>"):
        target = etree.fromstring(document.written([translation])).find(".//target")
        assert sorted(each.tag for each in target.iter()) == ["g", "target", "x"]


def test_what_xml_cannot_have_is_left_out() -> None:
    source = b'<xliff version="1.2"><file><body><trans-unit><source>a</source></trans-unit></body></file></xliff>'
    written = open_document("a.xlf", source).written(["x\0\x0b\ud800 < \uffff & ]]> \U0001f355"])
    assert etree.fromstring(written).findtext(".//target") == "x <  & ]]> \U0001f355"


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]><xliff version="1.2">&b;</xliff>'
OUTSIDE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]><xliff version="1.2">&a;</xliff>'


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (BOMB, "^line 1: it has a document type declaration"),
        (OUTSIDE, "^line 1: it has a document type declaration"),
        ('<xliff version="1.2">\n<file>&a;</file></xliff>', "^line 2, column 7: .*undefined entity"),
        ('<xliff version="1.2">\n<file></xliff>', "^line 2, column 9: it is not well-formed XML: mismatched tag"),
        ("", "^line 1, column 1: it is not well-formed XML: no element found"),
        ('<xliff version="1.2">' + "<g>" * 300, "^line 1: its elements are nested more than 200 deep"),
        ('<tmx version="1.4"/>', "^line 1: the root is <tmx> of version '1.4'; expected <xliff>"),
        ('<?xml version="1.0" encoding="latin-1"?><xliff version="1.2"/>', "^line 1: its encoding is latin-1"),
    ],
)
def test_a_broken_or_hostile_file_gets_an_error_with_its_position(source: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        open_document("a.xlf", source.encode())


@pytest.mark.parametrize(
    ("asked", "written"), [("DE", "de"), ("pt_br", "pt-BR"), ("eng_Latn", "en"), ("zh_Hant", "zh-Hant"), ("", None)]
)
def test_the_language_of_the_targets_is_written_in_bcp_47(asked: str, written: str | None) -> None:
    options = DocumentOptions(target=asked)
    first = etree.fromstring(translated(open_document("a.xlf", FIRST.encode(), options)))
    second = etree.fromstring(translated(open_document("a.xlf", SECOND.encode(), options)))
    assert [each.get("target-language") for each in first.iter("{*}file")] == [written]
    assert second.get("trgLang") == written


@pytest.mark.parametrize(("asked", "found"), [("DE", "de-AT"), ("pt_br", "pt"), ("zh", "cmn"), ("deu_Latn", "de")])
def test_targets_of_the_same_language_by_another_name_are_written(asked: str, found: str) -> None:
    source = FIRST.replace('source-language="en"', f'source-language="en" target-language="{found}"')
    root = etree.fromstring(translated(open_document("a.xlf", source.encode(), DocumentOptions(target=asked))))
    assert [each.get("target-language") for each in root.iter("{*}file")] == [found]


def test_targets_of_another_language_are_not_overwritten() -> None:
    source = FIRST.replace('source-language="en"', 'source-language="en" target-language="fr-CA"')
    with pytest.raises(
        DocumentError, match=r"^line 4: its target-language is 'fr-CA', and the translations are in 'de'"
    ):
        open_document("a.xlf", source.encode(), GERMAN)
    assert open_document("a.xlf", source.encode(), DocumentOptions(target="fr")).texts
