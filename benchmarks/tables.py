"""Formats records of measurements as text; pure, so that the document's content can be tested."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Record = Mapping[str, Any]
MISSING = "-"
BAR = 6  # characters of CTranslate2's bar


class Compared(NamedTuple):
    """Our rate and CTranslate2's, tokens or calls per second, and its settings."""

    model: str
    what: str
    ours: float
    theirs: float
    settings: str

    @property
    def name(self) -> str:
        """Return the row's name."""
        return f"{self.model}, {self.what}"

    @property
    def ratio(self) -> float:
        """Return how many times as fast we are."""
        return self.ours / self.theirs


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; aligning numbers is up to the reader."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def of_engines(records: Sequence[Record]) -> Iterator[Compared]:
    """Yield each row of the offline benchmark that both engines have, by their best rounds."""
    for model, decode, batch in dict.fromkeys((each["model"], each["decode"], each["batch"]) for each in records):
        row = [each for each in records if (each["model"], each["decode"], each["batch"]) == (model, decode, batch)]
        ours, theirs = (
            max((each for each in row if each["engine"] == engine), key=_best_rate, default=None)
            for engine in ("dragoman", "ctranslate2")
        )
        if ours is not None and theirs is not None:
            yield Compared(model, f"{decode} {batch}", _best_rate(ours), _best_rate(theirs), settings_of(theirs))


def settings_of(record: Record) -> str:
    """Return what an engine ran with."""
    return ", ".join([record["precision"], *(f"{name} {value}" for name, value in record["settings"].items())])


def bars(compared: Sequence[Compared]) -> str:
    """Return a line for each row, with its ratio as a bar."""
    width = max((len(each.name) for each in compared), default=0)
    lines = [f"{'tokens/s, calls/s':{width}}   ours theirs  ratio, CTranslate2 {'▒' * BAR}"]
    for each in compared:
        bar = "█" * round(BAR * each.ratio)
        lines.append(
            f"{each.name:{width}} {each.ours:6.0f} {each.theirs:6.0f}  {each.ratio:.2f} {bar}  {each.settings}"
        )
    return "\n".join(lines)


def _best_rate(record: Record) -> float:
    return float(record["tokens_per_second_best"])
