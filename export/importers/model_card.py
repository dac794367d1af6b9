"""The licence of a checkpoint, as its card, its metadata or its file of the licence states it."""

import io
import re
from pathlib import Path

from export.importers.json_file import read_json
from service.bundle.regular_file import open_regular

CARD_NAME = "README.md"
UNKNOWN_LICENCE = "unknown"
_METADATA_NAME = "metadata.json"
_FILES = ("LICENSE", "LICENCE", "LICENSE.txt", "LICENCE.txt", "LICENSE.md", "LICENCE.md", "COPYING")
_FRONT_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_KEY = re.compile(r"^(licen[sc]e(?:_name|_link)?):[ \t]*(.*)$")
_ITEM = re.compile(r"^[ \t]*-[ \t]+(.+)$")
# What the texts of licences begin with, and their names at SPDX; the first that is found counts.
_TEXTS = (
    (r"\bMIT License|Permission is hereby granted, free of charge", "MIT"),
    (r"\bApache License\b.{0,40}\bVersion 2\.0", "Apache-2.0"),
    (r"\bMozilla Public License,? (?:Version|v\.?) ?2\.0", "MPL-2.0"),
    (r"\bGNU AFFERO GENERAL PUBLIC LICENSE\b.{0,40}\bVersion 3", "AGPL-3.0"),
    (r"\bGNU LESSER GENERAL PUBLIC LICENSE\b.{0,40}\bVersion 3", "LGPL-3.0"),
    (r"\bGNU GENERAL PUBLIC LICENSE\b.{0,40}\bVersion 3", "GPL-3.0"),
    (r"\bGNU GENERAL PUBLIC LICENSE\b.{0,40}\bVersion 2", "GPL-2.0"),
    (r"\bCC0 1\.0\b", "CC0-1.0"),
    (r"\bAttribution-NonCommercial-ShareAlike 4\.0", "CC-BY-NC-SA-4.0"),
    (r"\bAttribution-NonCommercial-NoDerivatives 4\.0", "CC-BY-NC-ND-4.0"),
    (r"\bAttribution-NonCommercial 4\.0", "CC-BY-NC-4.0"),
    (r"\bAttribution-ShareAlike 4\.0", "CC-BY-SA-4.0"),
    (r"\bAttribution 4\.0", "CC-BY-4.0"),
    (r"\bBSD 3-Clause|Neither the name of", "BSD-3-Clause"),
    (r"\bBSD 2-Clause|Redistribution and use in source and binary forms", "BSD-2-Clause"),
)
_LIMIT = "not for commercial use"
NLLB_LICENCE = f"{UNKNOWN_LICENCE}; Meta's NLLB-200 weights are CC-BY-NC-4.0: {_LIMIT}"
_READ_CHARACTERS = 2000  # of a file of the licence
_MAX_CHARACTERS = 200  # of what is stated


def licence_of(directory: Path) -> str:
    """Return the licence that a checkpoint's folder states, such as "apache-2.0"; `UNKNOWN_LICENCE` if it does not."""
    stated = stated_licence(start_of(directory / CARD_NAME, 64 * _READ_CHARACTERS))
    if stated != UNKNOWN_LICENCE:
        return stated
    try:
        document = read_json(directory / _METADATA_NAME)
    except ValueError:
        document = {}
    for value in (document.get("license"), document.get("licence")):
        if isinstance(value, str) and value.strip():
            return _shown(value)
    for name in _FILES:
        if text := " ".join(start_of(directory / name, _READ_CHARACTERS).split()):
            found = (licence for pattern, licence in _TEXTS if re.search(pattern, text, re.IGNORECASE))
            return next(found, f"{UNKNOWN_LICENCE}: see its file {name}")
    return UNKNOWN_LICENCE


def stated_licence(card: str) -> str:
    """Return the licence in a card's front matter: one, several in a list, or one with a name of its own and a link."""
    front_matter = _FRONT_MATTER.match(card)
    given: dict[str, list[str]] = {}
    key = ""
    for line in front_matter[1].splitlines() if front_matter else ():
        if found := _KEY.match(line):
            key = found[1].replace("licence", "license")
            values = found[2].strip()
            inline = values[1:-1].split(",") if values.startswith("[") and values.endswith("]") else [values]
            given[key] = [plain for each in inline if (plain := _plain(each))]
        elif key and (item := _ITEM.match(line)):
            given[key].append(_plain(item[1]))
        else:
            key = ""
    named, link = given.get("license_name"), given.get("license_link")
    licences = given.get("license", [])
    if named and [each.lower() for each in licences] in ([], ["other"]):
        licences = named
    text = ", ".join(filter(None, licences))
    if not text:
        return UNKNOWN_LICENCE
    return _shown(f"{text} ({link[0]})" if link else text)


def with_its_limit(licence: str) -> str:
    """Return a licence with a warning, if its name says that commercial use is not allowed, as Creative Commons' do."""
    is_limited = re.search(r"(?<![a-z])nc(?![a-z])|non-?commercial", licence, re.IGNORECASE)
    return f"{licence}: {_LIMIT}" if is_limited and _LIMIT not in licence else licence


def _plain(value: str) -> str:
    """Return a value of YAML without its quotes or a comment."""
    text = re.sub(r"(?:^|\s)#.*$", "", value).strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _shown(text: str) -> str:
    """Return a text of a stranger's file for a terminal: printable, and short."""
    return "".join(c if c.isprintable() else " " for c in text.strip())[:_MAX_CHARACTERS]


def start_of(path: Path, characters: int) -> str:
    """Return how a text begins; nothing if it can't be read."""
    try:
        with open_regular(path) as file, io.TextIOWrapper(file, "utf-8", "replace") as lines:
            return lines.read(characters)
    except OSError:
        return ""
