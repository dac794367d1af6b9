"""The parts of an answer that must be the same each time, and the answers that calls get alone."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.mixed_calls import MixedCall, Model, Place, Refused, calls_of_each_kind

_VERSIONS = ("modelVersion", "model_version")


class Answer(NamedTuple):
    """The response: status, the version that answered ("" where the API does not report it), and content.

    Scores are omitted because their last bits depend on concurrent requests; errors have only their status.
    """

    code: str
    version: str
    said: Any

    def is_one_of(self, expected: dict[str, "Answer"]) -> bool:
        """Return whether it equals its version's answer to that call alone; without a version, any version's."""
        allowed = [expected.get(self.version)] if self.version else list(expected.values())
        return any(each is not None and (each.code, each.said) == (self.code, self.said) for each in allowed)


class Asked(NamedTuple):
    """A call and its answers on an otherwise idle server, by the version that gave them."""

    call: MixedCall
    expected: dict[str, Answer]


def save(path: Path, models: Sequence[Model], per_kind: int, asked: Sequence[Asked]) -> None:
    """Write the answers to `calls_of_each_kind`; the calls are made again when they are read."""
    expected = [each.expected for each in asked]
    path.write_text(json.dumps({"models": models, "per_kind": per_kind, "expected": expected}))


def load(path: Path) -> list[Asked]:
    given = json.loads(path.read_text())
    calls = calls_of_each_kind(given["per_kind"], [Model(*each) for each in given["models"]])
    return [
        Asked(call, {version: Answer(*answer) for version, answer in expected.items()})
        for call, expected in zip(calls, given["expected"], strict=True)
    ]


async def ask(place: Place, call: MixedCall, timeout_seconds: float) -> Answer:
    """Make a call; a refusal is an answer, too."""
    try:
        said = await call.answer(place, timeout_seconds)
    except Refused as refused:
        return Answer(str(refused), "", None)
    versions: set[str] = set()
    steady = _steady(said, versions)
    return Answer("OK", max(versions, default=""), steady)


def _steady(said: Any, versions: set[str]) -> Any:
    """Return what is the same each time, without versions, which are noted."""
    if isinstance(said, list):
        return [_steady(each, versions) for each in said]
    if not isinstance(said, dict):
        return said
    versions.update(said[name] for name in _VERSIONS if name in said)
    return {name: _steady(each, versions) for name, each in said.items() if name not in ("score", *_VERSIONS)}


def difference(answer: Answer, expected: dict[str, Answer]) -> str:
    """Describe in one line where an answer differs from its version's expected answer."""
    alone = expected.get(answer.version) or next(iter(expected.values()))
    if answer.code != alone.code:
        return f"{answer.code}; alone it is {alone.code}."
    got, wanted = json.dumps(answer.said, ensure_ascii=False), json.dumps(alone.said, ensure_ascii=False)
    first = next((i for i, (a, b) in enumerate(zip(got, wanted, strict=False)) if a != b), min(len(got), len(wanted)))
    around = slice(max(first - 60, 0), first + 100)
    return (
        f"version {answer.version!r} of {sorted(expected)} said ...{got[around]!r}; alone it is ...{wanted[around]!r}."
    )
