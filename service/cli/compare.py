"""`dragoman compare`: the same lines translated by two servers, and how the second differs from the first."""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from dragoman_client import Client, ClientError, Translation
from service.cli.command_error import CommandError
from service.cli.exit_codes import ExitCode
from service.cli.lines import Line, read_lines
from service.cli.options import Connection, credentials_options
from service.cli.percentile import percentile
from service.cli.streams import located, open_input, write

_FILE = click.Path(path_type=Path, dir_okay=False)


@dataclass(slots=True)
class Side:
    """What one server answered."""

    texts: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    finish_reasons: Counter[str] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)

    def add(self, translation: Translation, seconds: float) -> None:
        """Add the answer to one line."""
        self.texts.append(translation.text)
        self.seconds.append(seconds)
        self.finish_reasons[translation.finish_reason.value] += 1
        self.flags.update(flag.value for segment in translation.segments for flag in segment.flags)

    def told(self) -> dict[str, Any]:
        return {
            "median_ms": round(1000 * percentile(self.seconds, 0.5), 1),
            "p99_ms": round(1000 * percentile(self.seconds, 0.99), 1),
            "empty": sum(not text.strip() for text in self.texts),
            "finish_reasons": dict(sorted(self.finish_reasons.items())),
            "flags": dict(sorted(self.flags.items())),
        }


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option("--to", "target", required=True, metavar="CODE", help="Language to translate into, such as de.")
@click.option("--from", "source", default="", metavar="CODE", help="Language of the lines. Default: detected.")
@click.option("-i", "--file", "input_file", type=_FILE, metavar="FILE", help="Its lines. Default: standard input.")
@click.option("--model", default="", metavar="NAME", help="Model of both. Default: the one for the languages.")
@click.option("--worst", default=5, show_default=True, type=click.IntRange(0), help="Print this many different lines.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--min-chrf",
    type=click.FloatRange(0, 100),
    default=0.0,
    metavar="SCORE",
    help=f"End with status {ExitCode.DIFFERENT:d} if B's chrF against A is lower.",
)
@credentials_options
def compare(
    *,
    first: str,
    second: str,
    target: str,
    source: str,
    input_file: Path | None,
    model: str,
    worst: int,
    as_json: bool,
    min_chrf: float,
    credentials: Callable[[str], Connection],
) -> None:
    """Translate lines by the servers A and B, both HOST:PORT, and tell how B's translations differ from A's.

    Each line is a call to one and then to the other, in turns, so that their times can be compared. BLEU and chrF take
    A's translations for the reference: 100 means that all are the same. They need the extra `compare`.
    """
    scores = _scores()
    with open_input(input_file) as stream, credentials(first).client() as one, credentials(second).client() as other:
        lines = [line for line in read_lines(stream) if line.text.strip()]
        if not lines:
            raise CommandError("there is no line to translate.", ExitCode.DATA)
        sides = _translated((one, other), lines, source, target, model)
    found = _difference(*sides, lines, scores, worst)
    write(sys.stdout.buffer, json.dumps(found, ensure_ascii=False) + "\n" if as_json else _table(found))
    if found["chrf"] < min_chrf:
        raise CommandError(f"chrF is {found['chrf']}, below {min_chrf:g}.", ExitCode.DIFFERENT)


def _scores() -> Any:
    """Return sacrebleu. Imported here: the server needs it nowhere."""
    try:
        import sacrebleu
    except ImportError as error:
        message = "compare needs sacrebleu; run: pip install 'dragoman[compare]'"
        raise CommandError(message, ExitCode.CONFIG) from error
    return sacrebleu


def _translated(
    clients: tuple[Client, Client], lines: Iterable[Line], source: str, target: str, model: str
) -> tuple[Side, Side]:
    sides = (Side(), Side())
    both = tuple(zip(clients, sides, strict=True))
    for line in lines:
        for client, side in both if line.number % 2 else both[::-1]:
            began = time.perf_counter()
            try:
                (translation,) = client.translate([line.text], source, target, model=model)
            except ClientError as error:
                raise located(error, [line], f"{client.server}, line") from None
            side.add(translation, time.perf_counter() - began)
    return sides


def _difference(one: Side, other: Side, lines: Sequence[Line], scores: Any, worst: int) -> dict[str, Any]:
    """Return what is reported, with the `worst` lines by their chrF."""
    ratios = [len(b) / len(a) for a, b in zip(one.texts, other.texts, strict=True) if a]
    chrf = [scores.sentence_chrf(b, [a]).score for a, b in zip(one.texts, other.texts, strict=True)]
    differing = [i for i in range(len(lines)) if one.texts[i] != other.texts[i]]
    return {
        "lines": len(lines),
        "identical": round(1 - len(differing) / len(lines), 4),
        "chrf": round(scores.corpus_chrf(other.texts, [one.texts]).score, 2),
        "bleu": round(scores.corpus_bleu(other.texts, [one.texts]).score, 2),
        "length_ratio": {f"p{share}": round(percentile(ratios, share / 100), 3) for share in (1, 50, 99) if ratios},
        "a": one.told(),
        "b": other.told(),
        "worst": [
            {
                "line": lines[i].number,
                "chrf": round(chrf[i], 1),
                "text": lines[i].text,
                "a": one.texts[i],
                "b": other.texts[i],
            }
            for i in sorted(differing, key=chrf.__getitem__)[:worst]
        ],
    }


def _table(found: dict[str, Any]) -> str:
    a, b = found["a"], found["b"]
    ratios = ", ".join(f"{name} {ratio}" for name, ratio in found["length_ratio"].items())
    rows = [
        f"lines             {found['lines']}",
        f"identical         {found['identical']:.2%}",
        f"chrF              {found['chrf']}",
        f"BLEU              {found['bleu']}",
        f"length of B to A  {ratios}",
        "",
        f"{'':18}{'A':24}B",
        *(f"{name:18}{a[name]!s:24}{b[name]}" for name in ("median_ms", "p99_ms", "empty")),
    ]
    for kind in ("finish_reasons", "flags"):
        names = sorted(a[kind].keys() | b[kind].keys())
        rows += (f"{name:18}{a[kind].get(name, 0)!s:24}{b[kind].get(name, 0)}" for name in names)
    for each in found["worst"]:
        rows += ["", f"line {each['line']}, chrF {each['chrf']}: {each['text']}", f"A: {each['a']}", f"B: {each['b']}"]
    return "\n".join(rows) + "\n"
