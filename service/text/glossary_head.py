"""How callers' files of glossaries are told from the operator's: by their first line.

It is a comment that begins with `MARK` and says, in JSON, what the caller called the glossary, when it was created and
with which API key.
"""

import json
from dataclasses import dataclass
from datetime import datetime

COMMENT = "#"  # begins a line without a term
MARK = f"{COMMENT} dragoman-glossary "


@dataclass(frozen=True, slots=True)
class Head:
    """The first line of a caller's file; `key_name` is that of the caller's API key, empty if none was required."""

    title: str
    created: datetime
    key_name: str

    def line(self) -> str:
        """Return it as it is in the file."""
        about = {"title": self.title, "created": self.created.isoformat(), "key": self.key_name}
        return f"{MARK}{json.dumps(about)}\n"


def head_of(line: str) -> Head | None:
    """Return what the first line of a file says; `None` if the file is the operator's.

    Raises:
        ValueError: it begins as a caller's, and does not go on so.
    """
    if not line.startswith(MARK):
        return None
    try:
        about = json.loads(line.removeprefix(MARK))
        return Head(str(about["title"]), datetime.fromisoformat(about["created"]), str(about["key"]))
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"begins with {MARK!r} and does not say whose it is; remove the line") from error
