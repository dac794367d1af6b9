"""Licences are read from where people state them, and shown with what they forbid."""

import json
from pathlib import Path

import pytest

from export.importers.model_card import UNKNOWN_LICENCE, licence_of, stated_licence, with_its_limit


@pytest.mark.parametrize(
    ("front_matter", "expected"),
    [
        ("license: apache-2.0", "apache-2.0"),
        ("language:\n- en\n- de\nlicense: 'cc-by-4.0'  # as OPUS\ntags: []", "cc-by-4.0"),
        ("licence: MIT", "MIT"),
        ("license:\n- cc-by-4.0\n- mit\npipeline_tag: translation", "cc-by-4.0, mit"),
        ("license: [cc-by-4.0, 'mit']", "cc-by-4.0, mit"),
        (
            "license: other\nlicense_name: ours-1.0\nlicense_link: https://example.org/l",
            "ours-1.0 (https://example.org/l)",
        ),
        ("license_name: ours-1.0", "ours-1.0"),
        ("license: other\nlicense_link: LICENSE.md", "other (LICENSE.md)"),
        ("license: mit\r", "mit"),
        ("license: \x1b[31mmit", " [31mmit"),
        ("license: " + "x" * 300, "x" * 200),
        ("license:", UNKNOWN_LICENCE),
        ("model_license: mit", UNKNOWN_LICENCE),
        ("", UNKNOWN_LICENCE),
    ],
)
def test_a_card_states_it_in_its_front_matter(front_matter: str, expected: str) -> None:
    assert stated_licence(f"---\n{front_matter}\n---\n# A model\nlicense: gpl-3.0\n") == expected
    assert stated_licence(f"# A model\n{front_matter}\n") == UNKNOWN_LICENCE


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("LICENSE", "MIT License\n\nCopyright (c) 2026 Somebody", "MIT"),
        (
            "LICENSE",
            "            Apache License\n        Version 2.0",
            "Apache-2.0",
        ),
        ("LICENCE.txt", "Mozilla Public License Version 2.0\n====", "MPL-2.0"),
        ("COPYING", "GNU GENERAL PUBLIC LICENSE\n   Version 3, 29 June 2007", "GPL-3.0"),
        ("LICENSE", "Attribution-NonCommercial 4.0 International\n\n===", "CC-BY-NC-4.0"),
        ("LICENSE", "Creative Commons Attribution 4.0 International Public License", "CC-BY-4.0"),
        ("LICENSE", "Creative Commons Attribution-ShareAlike 4.0", "CC-BY-SA-4.0"),
        ("LICENSE", "All rights reserved.", "unknown: see its file LICENSE"),
        ("metadata.json", json.dumps({"license": "CC0"}), "CC0"),
        ("metadata.json", "[", UNKNOWN_LICENCE),
        ("README.md", "no front matter", UNKNOWN_LICENCE),
    ],
)
def test_other_files_state_it(tmp_path: Path, name: str, text: str, expected: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert licence_of(tmp_path) == expected
    (tmp_path / "README.md").write_text("---\nlicense: mit\n---\n", encoding="utf-8")
    assert licence_of(tmp_path) == "mit"


def test_what_it_forbids_is_said_once() -> None:
    for licence in ("cc-by-nc-4.0", "CC-BY-NC-SA-4.0", "polyform-noncommercial-1.0.0"):
        assert with_its_limit(licence) == f"{licence}: not for commercial use"
        assert with_its_limit(with_its_limit(licence)) == with_its_limit(licence)
    for licence in ("cc-by-4.0", "apache-2.0", "unknown", "nce", "ancient"):
        assert with_its_limit(licence) == licence
