"""Writes the table of values in dragoman/README.md from the comments in values.yaml: run it after a change there."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parent / "dragoman"
README = CHART / "README.md"
_BEGIN = "| value | default | |\n| --- | --- | --- |\n"
_LINE = re.compile(r"^( *)([A-Za-z]+):")


def table() -> str:
    """Return a row for each value: its name, default, and what the comment before it says, which begins with `--`."""
    text = (CHART / "values.yaml").read_text(encoding="utf-8")
    values = yaml.safe_load(text)
    rows: list[str] = []
    path: list[str] = []
    comment: list[str] = []
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("# -- "):
            comment = [stripped.removeprefix("# -- ")]
        elif stripped.startswith("# ") and comment:
            comment.append(stripped.removeprefix("# "))
        elif found := _LINE.match(line):
            path = [*path[: len(found[1]) // 2], found[2]]
            value = _value(values, path)
            has_values = isinstance(value, dict) and value != {}
            if (comment or not has_values) and (path[0], len(path)) != ("settings", 2):
                rows.append(f"| `{'.'.join(path)}` | {'' if has_values else _shown(value)} | {' '.join(comment)} |\n")
            comment = []
    return _BEGIN + "".join(rows)


def _value(values: Any, path: list[str]) -> Any:
    for name in path:
        values = values[name]
    return values


def _shown(value: Any) -> str:
    if value in ("", None):
        return ""
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def written() -> str:
    """Return the document with a table that is current."""
    return README.read_text(encoding="utf-8").partition(_BEGIN)[0] + table()


if __name__ == "__main__":
    README.write_text(written(), encoding="utf-8")
