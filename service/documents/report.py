"""Report on a document's translations: how many a person should check, which, and why."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from service.documents.document import STOP, Doubt
from service.domain.errors import counted

MAX_PLACES = 1000  # whose texts are named; all are counted


def doubt_about(translation: Any) -> Doubt | None:
    """Return the doubt of a call about a translation, the translator's or the client's; `None` if all is well."""
    flags = tuple(dict.fromkeys(flag.value for segment in translation.segments for flag in segment.flags))
    doubt = Doubt(flags, translation.finish_reason.value)
    return None if doubt == Doubt() else doubt


class Report:
    """The doubts of calls about the translations of a document's texts."""

    def __init__(self, left_out: Sequence[str] = ()) -> None:
        self._left_out = tuple(left_out)
        self._num_texts = 0
        self._flags: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._num_flagged = 0
        self._texts: list[tuple[int, dict[str, Any]]] = []

    def add(self, number: int, place: str, doubt: Doubt | None) -> None:
        """Add the text at `place`, with the doubt about it, if any; the report sorts texts by number."""
        self._num_texts += 1
        if doubt is None:
            return
        self._flags.update(doubt.flags)
        self._num_flagged += bool(doubt.flags)
        if doubt.finish_reason != STOP:
            self._reasons[doubt.finish_reason] += 1
        if len(self._texts) < MAX_PLACES:
            text = {"place": place, "flags": list(doubt.flags), "finish_reason": doubt.finish_reason}
            self._texts.append((number, text))

    @property
    def notes(self) -> list[str]:
        notes = list(self._left_out)
        for number, kinds, problem in (
            (self._num_flagged, self._flags, "flagged"),
            (self._reasons.total(), self._reasons, "cut off"),
        ):
            if number:
                counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
                notes.append(f"{counted(number, 'text was', 'texts were')} {problem}: {counts}.")
        return notes

    def to_json(self) -> dict[str, Any]:
        texts = [text for _, text in sorted(self._texts, key=lambda each: each[0])]
        return {
            "num_texts": self._num_texts,
            "flags": dict(self._flags.most_common()),
            "finish_reasons": dict(self._reasons.most_common()),
            "texts": texts,
            "left_out": list(self._left_out),
        }


def compact_json(report: dict[str, Any], max_characters: int) -> str:
    """Return a report in ASCII, with as many of its texts as fit, and without its other sentences."""
    document = {**report, "texts": []}
    del document["left_out"]
    room = max_characters - len(json.dumps(document))
    for text in report["texts"]:
        room -= len(json.dumps(text)) + 2
        if room < 0:
            break
        document["texts"].append(text)
    return json.dumps(document)
