"""Text files that are refused: broken and hostile ones, each with an error that names its line."""

from collections.abc import Mapping

import pytest

from service.documents import DocumentError, DocumentOptions, open_document

BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]><xliff version="1.2">&b;</xliff>'
PARAMETER = '<!DOCTYPE x [<!ENTITY % p SYSTEM "file:///etc/hostname">%p;]><xliff version="1.2"/>'
OUTSIDE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]><xliff version="1.2">&a;</xliff>'
TOO_DEEP = "it is nested more than 200 deep"
# By the file's name: its text, and what is said of it after "line", as a pattern.
REFUSED: Mapping[str, Mapping[str, str]] = {
    "a.po": {
        'msgid "a"\nmsgstr "b\n': "2: expected a comment, or msgid",
        'msgid "a"\nmsgstr "b"\nfoo\n': "3: expected a comment.*not 'foo'",
        'msgid "a"\n\n"b"\n': "3: the entry before this line needs msgid and msgstr",
        'msgid "a"\nmsgstr\n': "2: the entry before this line needs msgid and msgstr",
        '"a"\n': "1: expected msgid, msgstr and the like before '\"a\"'",
        'msgid "a"\nmsgid "b"\n': "2: the entry has a second msgid",
        'msgid "a"\nmsgid_plural "b"\nmsgstr[1] ""\n': r"3: expected msgstr\[0\], not msgstr\[1\]",
        'msgid "a"\nmsgid_plural "b"\n' + "".join(f'msgstr[{n}] ""\n' for n in range(7)): "9: .* at most 6 forms",
        'msgid ""\nmsgstr "Content-Type: text/plain; charset=EUC-TW\\n"\n': "2: its charset is EUC-TW",
    },
    "a.json": {
        "": "1: it is not JSON: Expecting value",
        '{"a" "b"}': "1: it is not JSON: Expecting ':' delimiter",
        '{"a": "b"\n]': "2: it is not JSON: Expecting ',' delimiter",
        "[] []": "1: it is not JSON: Extra data",
        '["a\nb"]': "1: it is not JSON: Invalid control character at",
        '// c\n"a"': "1: it is not JSON: Expecting value",
        "[" * 201 + "]" * 201: f"1: {TOO_DEEP}",
        "[" * 100_000: f"1: {TOO_DEEP}",
    },
    "a.ipynb": {
        '{"cells": [\n}': "2: it is not JSON: Expecting value",
        "[" * 100_000: f"1: {TOO_DEEP}",
        '{"worksheets": []}': "1: it is not a notebook of version 4",
    },
    "a.yml": {
        "a: b\n  c: d": r"\d: .*mapping values are not allowed in this context",
        "a:\n\tb: c": r"\d: .*found character that cannot start any token",
        "a:\n  b: 1\n c: 2": r"\d: .*did not find expected key",
        "a: 'b' c": r"\d: .*did not find expected key",
        "a: 'b": r"\d: .*found unexpected end of stream",
        "a: [b": r"\d: .*did not find expected ',' or ']'",
        'a: "\\q"': r"\d: .*found unknown escape character",
        "ü: \x01": r"\d: .*control characters are not allowed",
        "a: b\rc: d": r"\d: .*a line ends with another character than a line feed",
        "a: @b": r"\d: .*found character that cannot start any token",
        "- " * 101 + "a": r"\d: .*it is nested more than 100 deep",
    },
    "a.xlf": {
        BOMB: "1: it declares the entity 'a'",
        OUTSIDE: "1: it declares the entity 'a'",
        '<xliff version="1.2">\0</xliff>': "1: it has a NUL character",
        PARAMETER: "1: it declares the entity 'p'",
        '<!DOCTYPE x SYSTEM "a.dtd"><xliff version="1.2">\n&a;</xliff>': "2: it refers to the entity 'a'",
        '<xliff version="1.2">\n<file>&a;</file></xliff>': "2, column 7: .*undefined entity",
        '<xliff version="1.2">\n<file></xliff>': "2, column 9: it is not well-formed XML: mismatched tag",
        "": "1, column 1: it is not well-formed XML: no element found",
        '<xliff version="1.2">' + "<g>" * 300: "1: its elements are nested more than 200 deep",
        '<tmx version="1.4"/>': "1: the root is <tmx> of version '1.4'; expected <xliff>",
        '<?xml version="1.0" encoding="utf-7"?><xliff version="1.2"/>': "1: its encoding is utf-7",
    },
    "a.xml": {
        "<a/>": r"1.*: the root is <a>; expected <resources>\.$",
        "<resources>": r"1.*: it is not well-formed XML: no element found\.$",
    },
    "a.tmx": {
        "<a/>": r"1.*: the root is <a>; expected <tmx>\.$",
        "<tmx><header srclang='en'/>\n<tu><tuv lang='fr'/></tu></tmx>": r"2: it has no segments in 'en'\.$",
    },
    "a.ttml": {"<a/>": r"1.*: the root is <a>; timed text is in <tt>\.$"},
    "a.resx": {"<a/>": r"1.*: the root is <a>; expected <root>\.$"},
    "a.ts": {
        "<a/>": r"1.*: the root is <a>; expected <TS>\.$",
        "const a = 1;": r"1.*: it is not well-formed XML: ",
        '<TS language="fr"><message><source>a</source><translation>b</translation></message></TS>': (
            r"1: its language is 'fr', with translations, and the new ones are in 'de'; remove the old ones"
        ),
    },
    "a.stringsdict": {"<a/>": r"1.*: the root is <a>; expected <plist>\.$"},
    "a.xcstrings": {
        '{"strings": {}, "sourceLanguage": 1,}': "1: it is not JSON: Expecting property name enclosed in double quotes",
        '{\n "sourceLanguage": "de"}': r"2: its sourceLanguage is 'de', the same as the target\.$",
    },
    "a.properties": {r"a=\u12": r"1: an escape \\u has no four hexadecimal digits\.$"},
    "a.strings": {
        '"a" = {};': r'1: expected a string here; an entry is "key" = "value";\.$',
        '"a" = "b"': r'1: expected ; here; an entry is "key" = "value";\.$',
        "\x00": r'1: expected = here; an entry is "key" = "value";\.$',
    },
    "a.csv": {
        'a,text\n1,x\n2,"open\nx\n': "3: the cell that starts here with a quotation mark has no end",
        'a,text\n1,"x"y\n': "2: 'y' follows the quotation mark that ends a cell",
        "a,b\n1,x\n": "1: there is no column 'text'; the columns are 'a', 'b'",
        "text,text\n1,x\n": "1: there are 2 columns 'text'; the columns are 'text', 'text'; give its",
        "": "1: there is no column 'text'; the columns are none",
    },
    "a.srt": {"\n\nGo\n": "3: expected the times of a cue.*not 'Go'"},
    "a.ass": {
        "Dialogue: a": r"1: there is no section \[Script Info\] or \[Events\]\.",
        "[Events]\nFormat: Text, Start\n": "2: the last column of events must be Text",
    },
    "a.vtt": {"1\n00:01.000 --> 00:02.000\nGo\n": "1: a WebVTT file starts with WEBVTT"},
}


@pytest.mark.parametrize(("name", "source"), [(name, source) for name, found in REFUSED.items() for source in found])
def test_what_is_broken_gets_an_error_with_its_line(name: str, source: str) -> None:
    options = DocumentOptions(columns=("text",) * (name == "a.csv"), target="de")
    with pytest.raises(DocumentError, match=f"^line {REFUSED[name][source]}"):
        open_document(name, source.encode(), options)
