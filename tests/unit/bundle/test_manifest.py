"""Manifests that somebody else wrote, or that are damaged: refused in one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from service.bundle.manifest import MANIFEST_NAME, BundleError, Manifest


def load(directory: Path, text: str) -> Manifest:
    (directory / MANIFEST_NAME).write_text(text, encoding="utf-8")
    return Manifest.load(directory)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "\ud800"}, "can't be read: 'utf-8' codec can't encode"),
        ({"schema_version": [[]] * 9999}, r"schema_version is \[\[\], .*; expected a number"),
        ({"checksums": {"a\nb": 5}}, r"manifest\.checksums\['a\\nb'\] is 5; expected str"),
        ({"checksums": {"a\x1cb": ""}}, r"file name 'a\\x1cb' can't be used; allowed are plain relative names"),
        ({"checksums": {"ä" * 128: ""}}, "can't be used; allowed are plain relative names of at most 255 bytes"),
        ({"checksums": {"../a": ""}}, r"file name '\.\./a' leaves the bundle; allowed are plain"),
    ],
)
def test_what_can_not_be_told_or_used_is_refused(
    tiny_bundle: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    document = json.loads((tiny_bundle / MANIFEST_NAME).read_text(encoding="utf-8"))
    for name, value in changes.items():
        document[name] = {**document[name], **value} if isinstance(value, dict) else value
    with pytest.raises(BundleError, match=message) as refused:
        load(tmp_path, json.dumps(document))
    assert len(str(refused.value).splitlines()) == 1
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 100_000, "[" * 980 + "]" * 980])
def test_numbers_too_long_and_lists_too_deep_are_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(BundleError) as refused:
        load(tmp_path, f'{{"schema_version": {value}}}')
    assert len(str(refused.value).splitlines()) == 1
    assert len(str(refused.value)) < 1000
