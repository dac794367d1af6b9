"""PO files, read again by polib."""

import re

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.documents import DocumentError, DocumentOptions, Doubt, open_document
from tests.unit.documents.pseudo import texts, translated


def test_entries_are_translated_again_if_that_is_asked_for_and_into_the_same_word() -> None:
    document = open_document("t.po", b'msgid "window"\nmsgstr "Fenster"\n', DocumentOptions(has_all=True))
    assert document.written(["window"]) == b'msgid "window"\nmsgstr "window"\n'


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ('msgid "One" " more"\nmsgstr ""\n', ["One more"]),
        ('msgid "One"msgstr""', ["One"]),
        ('msgid\n"One"\n\n" more" # a comment\nmsgstr ""\n', ["One more"]),
        ('msgid "One"\n# a comment\nmsgstr ""\nmsgid "two" msgstr ""', ["One", "two"]),
        ('domain "x"\nmsgid "One"\nmsgstr ""\n', ["One"]),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr [0] ""\nmsgstr[ 1 ] ""\n', ["a", "b"]),
        ('#~ msgid "a"\n#~ msgstr ""\n\n#~| msgid "b"\n', []),
        ('#, fuzzy\n#~ msgid "a"\n#~ msgstr ""\nmsgid "b"\nmsgstr "c"\n', []),
        ('#: a.c:1\r\n#, c-format\r\nmsgid "a"\r\nmsgstr ""\r\n', ["a"]),
        # A language with one form gets that of many.
        ('msgid "one file"\nmsgid_plural "%d files"\nmsgstr[0] ""\n', ['<code id="0">%d</code> files']),
    ],
)
def test_entries_are_read_as_gettext_reads_them(source: str, told: list[str]) -> None:
    document = open_document("t.po", source.encode())
    assert texts(document) == told
    assert texts(open_document("t.po", translated(document))) == []


@pytest.mark.parametrize(
    ("charset", "translation", "found"),
    [
        ("ISO-8859-1", "Caf\u00e9", "iso8859-1"),
        ("CP1252", "\u2013", "cp1252"),
        ("KOI8-R", "\u0434\u0430", "koi8-r"),
        ("EUC-JP", "\u99c5", "euc_jp"),
        ("Shift_JIS", "\u8868", "shift_jis"),  # whose second byte is a backslash
        ("ISO-8859-1", "\u99c5", "utf-8"),
        ("ASCII", "e", "ascii"),
        ("us-ascii", "\u00e9", "utf-8"),
        ("CHARSET", "\u00e9", "utf-8"),
    ],
)
def test_the_charset_of_the_header_is_believed(charset: str, translation: str, found: str) -> None:
    header = f'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset={charset}\\n"\n\n'
    source = f'{header}msgid "caf\u00e9"\nmsgstr ""\n' if charset == "ISO-8859-1" else f'{header}msgid "a"\nmsgstr ""\n'
    document = open_document("t.po", source.encode(found if found != "utf-8" else "latin-1"))
    written = document.written([translation]).decode(found)
    assert written.endswith(f'msgstr "{translation}"\n')
    assert f"charset={'UTF-8' if found == 'utf-8' else charset}" in written


def test_what_is_not_the_header_says_nothing_about_the_charset() -> None:
    source = b'msgid "Content-Type: text/html; charset=koi8-r\\n"\nmsgstr ""\n\nmsgid "\xc3\xa9"\nmsgstr ""\n'
    assert texts(open_document("t.po", source))[-1] == "é"


def test_what_is_no_escape_is_read_as_other_readers_do() -> None:
    written = translated(open_document("t.po", b'msgid "c:\\data\\.x"\nmsgstr ""\n'))
    assert polib.pofile(written.decode())[0].msgstr == r"C:\DATA\.X"


def test_bytes_that_are_not_of_the_charset_are_named() -> None:
    source = b'msgid ""\nmsgstr "Content-Type: text/plain; charset=CP1252\\n"\nmsgid "\x81"\nmsgstr ""\n'
    with pytest.raises(DocumentError, match=r"^line 3: byte \d+, 0x81, is not CP1252, which"):
        open_document("t.po", source)


FUZZY = [
    ('msgid "a"\nmsgstr ""\n', '#, fuzzy\nmsgid "a"\nmsgstr "A"\n'),
    ('#| msgid "x"\nmsgid "a"\nmsgstr ""\n', '#, fuzzy\n#| msgid "x"\nmsgid "a"\nmsgstr "A"\n'),
    ('#, c-format\nmsgid "a"\nmsgstr ""\n', '#, fuzzy, c-format\nmsgid "a"\nmsgstr "A"\n'),
    ('#, fuzzy\nmsgid "a"\nmsgstr ""\n', '#, fuzzy\nmsgid "a"\nmsgstr "A"\n'),
    ('#: x\r\nmsgctxt "c"\r\nmsgid "a"\r\nmsgstr ""\r\n', None),
]


@pytest.mark.parametrize(("source", "written"), FUZZY)
def test_an_entry_whose_translation_is_in_doubt_is_fuzzy(source: str, written: str | None) -> None:
    document = open_document("t.po", source.encode())
    sure = document.written(["A"]).decode()
    assert sure == source.replace('msgstr ""', 'msgstr "A"')
    doubtful = document.written(["A"], {0: Doubt((), "length")}).decode()
    assert doubtful == (written or sure.replace('msgctxt "c"', '#, fuzzy\r\nmsgctxt "c"'))


def test_one_doubtful_form_makes_an_entry_fuzzy_once() -> None:
    document = open_document("t.po", b'msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\nmsgstr[1] ""\n')
    for doubts in ({1: Doubt(("term",))}, {0: Doubt(("term",)), 1: Doubt(("empty",))}):
        assert document.written(["A", "B"], doubts).count(b"fuzzy") == 1


@pytest.mark.parametrize(
    ("flag", "text", "written"),
    [
        ("c-format", "'%s' by %d", "#, c-format|%2$d by '%1$s'"),
        ("python-format", "'%s' by %d", "#, fuzzy, python-format|%d by '%s'"),
        ("java-format", "''{0}'' by {1}", "#, java-format|{1} by ''{0}''"),
    ],
)
def test_arguments_in_another_order_take_the_right_values(flag: str, text: str, written: str) -> None:
    document = open_document("t.po", f'#, {flag}\nmsgid "{text}"\nmsgstr ""\n'.encode())
    [told] = texts(document)
    first, second = re.findall("(?:<span [^>]*>)?<code id=.*?</code>(?:</span>)?", told)
    swapped = told.replace(first, "*").replace(second, first).replace("*", second)
    found = document.written([swapped]).decode().splitlines()
    assert f"{found[0]}|{found[2].removeprefix('msgstr ')[1:-1]}" == written


@pytest.mark.parametrize(
    ("text", "told", "translation", "written"),
    [
        (r"Quit\tCtrl+Q", 'Quit<br id="1"><code id="2">Ctrl+Q</code>', 'Ende<br id="1">', r"Ende\tCtrl+Q"),
        (
            "Press :kbd:`Ctrl+S`, see :ref:`the page <page>`.",
            'Press <code id="1">:kbd:`Ctrl+S`</code>, see <span id="3">the page</span>.',
            'Siehe <span id="3">die Seite</span>',
            "Siehe :ref:`die Seite <page>`:kbd:`Ctrl+S`",
        ),
    ],
)
def test_what_programs_need_comes_back(text: str, told: str, translation: str, written: str) -> None:
    document = open_document("t.po", f'msgid "{text}"\nmsgstr ""\n'.encode())
    assert texts(document) == [told]
    assert document.written([translation]).decode() == f'msgid "{text}"\nmsgstr "{written}"\n'


def test_a_template_gets_a_charset_a_language_and_plurals() -> None:
    header = r'msgid "" msgstr "Language: \n" "Content-Type: text/plain; charset=CHARSET\n" '
    header += r'"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\n"'
    source = f'#, fuzzy\n{header}\nmsgid "a"\nmsgstr ""\n'
    written = translated(open_document("a.pot", source.encode(), DocumentOptions(target="de"))).decode()
    assert "charset=UTF-8" in written
    assert r"Language: de\n" in written
    assert "nplurals=2; plural=(n != 1);" in written
    other = translated(open_document("a.pot", source.encode(), DocumentOptions(target="pt_BR"))).decode()
    assert r"Language: pt_BR\n" in other
    assert "nplurals=INTEGER" in other
    assert "CHARSET" in translated(open_document("a.po", source.encode())).decode()


# polib ends lines at every character that Python does, even within strings, and knows no \\a.
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\a\x1a\x1c\x1d\x1e\x85\u2028\u2029")))
def test_any_translation_is_read_again_as_it_is(translation: str) -> None:
    document = open_document("t.po", b'msgid "file"\nmsgstr ""\n')
    assert polib.pofile(document.written([translation]).decode())[0].msgstr == translation.strip()
