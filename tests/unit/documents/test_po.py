"""PO files, read again by polib."""

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.documents import DocumentError, DocumentOptions, open_document
from tests.unit.documents.pseudo import texts, translated

HEADER = (
    'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Plural-Forms: nplurals=2; plural=n != 1;\\n"\n'
)
CATALOGUE = (
    HEADER
    + r"""
# a person's comment
#. extracted
#: file.c:12
#, c-format
msgctxt "menu"
msgid "Open %s file\n"
msgstr ""

#, fuzzy
#| msgid "Old keys"
msgid "Find "
"keys"
msgstr "alt"

msgid "window"
msgstr "Fenster"

#, c-format
msgid "%d \"file\""
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

#, kde-format
msgid "Copied %1 of %2"
msgstr ""

#~ msgid "old"
#~ msgstr "obsolete"
"""
)


def catalogue(data: bytes) -> polib.POFile:
    return polib.pofile(data.decode())


def test_only_untranslated_and_fuzzy_entries_change_and_nothing_beside_msgstr() -> None:
    document = open_document("t.po", CATALOGUE.encode())
    assert texts(document)[:3] == ["Open %s file", "Find keys", '%d "file"']
    before, after = catalogue(CATALOGUE.encode()), catalogue(translated(document))
    for old, new in zip(before, after, strict=True):
        for name in ("msgid", "msgid_plural", "msgctxt", "comment", "tcomment", "flags", "occurrences", "obsolete"):
            assert getattr(new, name) == getattr(old, name)
        assert new.previous_msgid == old.previous_msgid
    assert [entry.msgstr for entry in after] == [
        "OPEN %S FILE\n",
        "FIND KEYS",
        "Fenster",
        "",
        "COPIED %1 OF %2",
        "obsolete",
    ]
    assert after[3].msgstr_plural == {0: '%D "FILE"', 1: "%D FILES"}
    assert after.metadata == before.metadata


def test_entries_with_a_translation_are_translated_again_if_that_is_asked_for() -> None:
    document = open_document("t.po", CATALOGUE.encode(), DocumentOptions(has_all=True))
    assert catalogue(translated(document)).find("window").msgstr == "WINDOW"


def test_an_entry_whose_translation_is_the_same_word_is_translated() -> None:
    document = open_document("t.po", b'msgid "Tab"\nmsgstr ""\n')
    assert document.written(["Tab"]) == b'msgid "Tab"\nmsgstr "Tab"\n'


def test_more_than_two_plural_forms_are_not_guessed() -> None:
    source = b'msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\nmsgstr[2] ""\n'
    document = open_document("t.po", source)
    assert (document.texts, translated(document)) == ([], source)
    assert list(document.notes) == ["1 entries with more than two plural forms were left as they are."]


def test_a_language_with_one_form_gets_that_of_many() -> None:
    document = open_document("t.po", b'msgid "one file"\nmsgid_plural "%d files"\nmsgstr[0] ""\n')
    assert texts(document) == ["%d files"]


# polib ends lines at every character that Python does, even within strings, and knows no \\a.
@given(
    st.text(
        st.characters(codec="utf-8", exclude_characters="\0\a\x1a\x1c\x1d\x1e\x85\u2028\u2029"), min_size=1, max_size=40
    )
)
def test_any_translation_is_read_again_as_it_is(translation: str) -> None:
    document = open_document("t.po", HEADER.encode() + b'\nmsgid "file"\nmsgstr ""\n')
    assert catalogue(document.written([translation])).find("file").msgstr == translation.strip()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('msgid "a"\nmsgstr "b\n', "^line 2: expected a comment, or msgid"),
        ('msgid "a"\nmsgstr "b"\nfoo\n', "^line 3: expected a comment.*not 'foo'"),
        ('msgid "a"\n\n"b"\n', "^line 2: the entry before this line needs msgid and msgstr"),
        ('msgid "a"\nmsgid "b"\n', "^line 2: the entry has a second msgid"),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr[1] ""\n', r"^line 3: expected msgstr\[0\], not msgstr\[1\]"),
        ('msgid ""\nmsgstr "Content-Type: text/plain; charset=ISO-8859-1\\n"\n', "^line 2: its charset is ISO-8859-1"),
    ],
)
def test_a_broken_file_gets_an_error_with_its_line(source: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        open_document("t.po", source.encode())
