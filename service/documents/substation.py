r"""SubStation Alpha (`.ass`, `.ssa`; https://github.com/libass/libass/wiki/ASS-File-Format-Guide).

The texts are those of `Dialogue:` lines. What is in braces, as `{\i1}`, stays with its words, and drawings stay as they
are; `\N` and `\n` end lines, and `\h` is a no-break space.
"""

import re
from collections.abc import Iterator, Mapping

from service.documents.cues import Cue, Notation, lines_between, slots
from service.documents.document import Document, DocumentOptions, Spliced, notes_on_left
from service.documents.encodings import decoded
from service.documents.errors import DocumentError
from service.documents.lines import Line, lines

_COLUMNS = "layer,start,end,style,name,marginl,marginr,marginv,effect,text"  # of files that name none
_KEPT = (  # a drawing, or what is in braces
    r"\{[^{}]*\\p[1-9][^{}]*+\}(?:[^{]|\{(?![^{}]*\\p0[^{}]*\}))*+|\{[^{}]*+\}"
)
_TAG = re.compile(rf"\{{\\(?P<name>[ibus])(?:1|(?P<close>0))\}}|{_KEPT}|[♪♫♬]+")
_ENDING = re.compile(rf"{_KEPT}|(?P<ending>\\[Nn])")
_WRITTEN = str.maketrans({"\u00a0": "\\h", "{": "(", "}": ")"})  # text can't have braces
_NOTATION = Notation(_TAG, lambda raw: raw.replace("\\h", "\u00a0"), lambda text: text.translate(_WRITTEN))

_Event = Mapping[str, str]


def read(data: bytes, _: DocumentOptions) -> Document:
    """Read the events of a script. Those that a karaoke template has made, one for each syllable, stay as they are."""
    source, encode = decoded(data)
    cues: list[Cue] = []
    before: _Event = {}
    num_effects = 0
    for line, event in _events(source):
        if event.get("effect", "").strip().lower() == "fx":
            num_effects += 1
            continue
        voice = cues[-1].voice if cues and _follows(event, before) else str(line.number)
        before = event
        cues.append(Cue(lines_between(source, line.start, line.start + len(line.text), line.number, _ENDING), voice))
    notes = notes_on_left(num_effects, "event of a karaoke template (fx)", "events of a karaoke template (fx)")
    return Spliced(source, slots(source, cues, _NOTATION), encode, notes)


def _events(source: str) -> Iterator[tuple[Line, _Event]]:
    """Yield the text of each line of dialogue, as a line, and all its columns."""
    section, columns = "", _COLUMNS.split(",")
    sections = set()
    for line in lines(source):
        key, _, value = line.text.lstrip().partition(":")
        if key.startswith("["):
            section = line.text.strip().lower()
            sections.add(section)
        elif section == "[events]" and key == "Format":
            columns = [name.strip().lower() for name in value.split(",")]
            if columns[-1] != "text":
                raise DocumentError("the last column of events must be Text.", f"line {line.number}")
        elif section == "[events]" and key == "Dialogue":
            fields = value.split(",", len(columns) - 1)
            if len(fields) == len(columns):
                start = line.start + len(line.text) - len(fields[-1])
                yield Line(line.number, fields[-1], start, ""), dict(zip(columns, fields, strict=True))
    if not sections & {"[script info]", "[events]"}:
        raise DocumentError("there is no section [Script Info] or [Events].", "line 1")


def _follows(event: _Event, before: _Event) -> bool:
    same = all(event.get(key) == before.get(key) for key in ("style", "name"))
    return same and before.get("start", "").rjust(20) < event.get("start", "").rjust(20)
