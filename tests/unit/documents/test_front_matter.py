"""Front matter of Markdown: named keys are translated, everything else stays byte for byte."""

import pytest
import yaml

from service.documents import DocumentOptions, open_document
from tests.unit.documents.pseudo import translated, unchanged

KEYS = DocumentOptions(front_matter=("title", "description", "hero.name", "params.text"))
YAML = """---
title: A page # a comment
slug: a-page
description: >-
  One line
  and two

  A paragraph
tags: [title, b]
hero:
  name: 'It''s'
  title: left
date: 2024-01-01
---
Text
"""


def test_only_the_named_keys_change() -> None:
    written = translated(open_document("a.md", YAML.encode(), KEYS)).decode()
    assert written.split("\n") == [
        *("---", "title: A PAGE # a comment", "slug: a-page", "description: >-", "  ONE LINE AND TWO", ""),
        *("  A PARAGRAPH", "tags: [title, b]", "hero:", "  name: 'IT''S'", "  title: left", "date: 2024-01-01", "---"),
        *("TEXT", ""),
    ]
    assert translated(open_document("a.md", YAML.encode())).decode() == YAML.replace("Text", "TEXT")
    windows = YAML.replace("\n", "\r\n").encode()
    assert unchanged(open_document("a.md", windows, KEYS)) == windows
    assert translated(open_document("a.md", windows, KEYS)).decode() == written.replace("\n", "\r\n")


@pytest.mark.parametrize("scalar", ["A page", '"A \\"page\\""', "'A page'"])
@pytest.mark.parametrize(
    "translation",
    [
        *("Seite: eins", "- Seite", "'Seite'", '"S"', "Seite #1", "true", "S\\e", "[S]", "{S}", "& S", "S\nT"),
        *("Seite:", "?"),
    ],
)
def test_any_translation_is_read_as_that_text(scalar: str, translation: str) -> None:
    document = open_document("a.md", f"---\ntitle: {scalar}\nb: c\n---\n".encode(), KEYS)
    front = document.written([translation]).decode().split("---\n")[1]
    assert yaml.safe_load(front) == {"title": translation.replace("\n", " "), "b": "c"}


def test_toml() -> None:
    source = "+++\ntitle = \"A \\\"b\\\"\"\nc = 'D'\n[params]\ntext = 'left' # e\n+++\nF\n".replace("left", "it is")
    written = translated(open_document("a.md", source.encode(), KEYS)).decode()
    assert written == "+++\ntitle = \"A \\\"B\\\"\"\nc = 'D'\n[params]\ntext = 'IT IS' # e\n+++\nF\n"


@pytest.mark.parametrize(
    "value", ["true", "12", "2024-01-01", "[a]", "{a: b}", "&x y", "*x", "!!str a", "| # no", '"a', ""]
)
def test_what_is_no_simple_string_stays(value: str) -> None:
    source = f"---\ntitle: {value}\n---\n".encode()
    assert translated(open_document("a.md", source, KEYS)) == source
