"""YAML's scalars (https://yaml.org/spec/1.2.2): what they say, and how to say something else in the same style."""

import re
from collections.abc import Callable, Sequence

from service.documents.values import EscapeStyle, as_escape

# Plain words that are no strings, in YAML 1.1 or 1.2, and Ruby's symbols.
_NO_STRING = re.compile(
    r"(?i:y|n|yes|no|on|off|true|false|null|~|[-+]?\.inf|\.nan)|[-+]?[.\d][\d_.,:]*(?:[eE][-+]?\d+)?|0[xob][\da-fA-F_]+"
    r"|\d{4}-\d\d?-\d\d?(?:[Tt]|[ \t]+)\d[\d:. \tZz+-]*|:[\w\"].*|=|<<",
    re.ASCII | re.DOTALL,
)
_SAFE = re.compile(r"[^\W_](?:[^:#]|:(?=[^\s,\[\]{}])|(?<!\s)#)*+")
_WRITTEN = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def is_string(plain: str) -> bool:
    """Return whether a plain scalar is a string: no number, date, truth value, null, or symbol of Ruby."""
    return not _NO_STRING.fullmatch(plain)


def folded(lines: Sequence[str]) -> str:
    """Return what lines say that are one text: each line break is a space, and each empty line a line feed."""
    text = lines[0].rstrip(" \t")
    num_empty = 0
    for line in lines[1:]:
        words = line.strip(" \t")
        if words:
            text += ("\n" * num_empty or " ") + words
            num_empty = 0
        else:
            num_empty += 1
    return text


def write_block(indent: str, ending: str, is_folded: bool, text: str) -> str:
    """Return the lines of a block scalar, but for the indentation of the first."""
    if is_folded:
        text = re.sub(r"\n+", lambda match: match[0] + "\n", text)
        lines = [line.lstrip(" \t") for line in text.split("\n")]
    else:
        lines = text.split("\n")
    return ending.join(lines[:1] + [indent + line if line.strip() else "" for line in lines[1:]])


def write_plain(style: EscapeStyle, is_flow: bool, text: str) -> str:
    """Return a plain scalar; one in double quotes if it would not say the same."""
    is_safe = _SAFE.fullmatch(text) and text.isprintable() and is_string(text) and not text.endswith((" ", ":"))
    return text if is_safe and not (is_flow and re.search(r"[,\[\]{}]", text)) else write_double(style, text)


def write_single(style: EscapeStyle, text: str) -> str:
    """Return a scalar in single quotes; in double ones, if it has what can't be in these."""
    if all(each.isprintable() or each == "\xa0" for each in text):
        return "'" + text.replace("'", "''") + "'"
    return write_double(style, text)


def write_double(style: Callable[[str], str], text: str) -> str:
    """Return a scalar in double quotes."""
    output = []
    for each in text:
        if each in _WRITTEN:
            output.append(_WRITTEN[each])
        elif each.isprintable() or each == "\xa0":
            output.append(style(each))
        else:
            output.append(as_escape(each) if each <= "\uffff" else f"\\U{ord(each):08x}")
    return '"' + "".join(output) + '"'
