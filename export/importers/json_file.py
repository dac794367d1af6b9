"""Reads checkpoints' JSON files: small ones that contain an object."""

import json
from pathlib import Path
from typing import Any

from export.importers import stored_file


def read_json(path: Path) -> dict[str, Any]:
    return parse_json(stored_file.read(path))


def parse_json(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data.decode("utf-8"))
    except RecursionError as error:
        raise ValueError(f"it can't be read: {error}") from error
    if not isinstance(document, dict):
        raise ValueError(f"it holds {type(document).__name__}, expected an object")
    return document
