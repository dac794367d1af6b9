"""Every call of a serving benchmark as a line of JSON, from which `python -m benchmarks.call_records FILE...`
computes the figures again.

A run, which is one load on one server, begins with a line that has `window`: the seconds from `since` to `until` in
which scheduled calls are judged, and the objective. The lines of its calls follow. Times are seconds from the start of
the load: `arrival` is when the call was scheduled, `sent` when it was, `done` when its answer or error was there, and
`first_byte` when the first part of a streamed answer was; it is null for calls that are not streamed.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click

from benchmarks.load_generator import Load, Outcome
from benchmarks.quality import held_out_references, quality_of
from benchmarks.serving_points import Keep, Window, judge, throughput
from benchmarks.tables import markdown
from benchmarks.workload import held_out_texts

COLUMNS = ("calls", "sentences_per_second", "tokens_per_second", "p50_ms", "p99_ms", "goodput", "shed_share", "bleu")


class CallLog:
    """The file of one benchmark's calls, written run by run."""

    def __init__(self, path: Path, count_tokens: Callable[[str], int]) -> None:
        """Begin the file anew. `count_tokens` is for sources, and for answers of servers that don't count theirs."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("", encoding="utf-8")
        self._path = path
        self._num_runs = 0
        self._count_tokens = count_tokens
        self._source_tokens = [count_tokens(text) for text in held_out_texts()]

    def keeper(self, **about: Any) -> Keep:
        """Return a function that writes a run's calls and returns its id, output tokens per second, and quality.

        `about` describes the run: model, contender and kind of measurement; `has_references` if its answers are judged.
        """
        return partial(self._add, about)

    def _add(self, about: Mapping[str, Any], load: Load, outcome: Outcome, window: Window) -> dict[str, Any]:
        self._num_runs += 1
        run = f"{self._num_runs:04d}"
        common = {"run": run, "contender": about.get("contender", ""), "seed": load.seed}
        head = {
            **about,
            **common,
            "rate": load.rate,
            "texts_per_call": load.texts_per_call,
            "window": asdict(window),
            "wall_seconds": outcome.wall_seconds,
        }
        calls = [{**common, **call} for call in self._calls(load, outcome)]
        with self._path.open("a", encoding="utf-8") as file:
            for line in (head, *calls):
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        answered = sum(call["output_tokens"] for call in calls if call["status"] == "OK")
        return {"run": run, "tokens_per_second": answered / outcome.wall_seconds, **_quality(head, calls)}

    def _calls(self, load: Load, outcome: Outcome) -> Iterator[dict[str, Any]]:
        for number, (scheduled, latency, status, num_tokens) in enumerate(outcome.calls):
            first = outcome.first_texts[number]
            texts = [(first + i) % len(self._source_tokens) for i in range(load.texts_per_call)]
            answers = outcome.answers[number] if outcome.answers else []
            yield {
                "call": number,
                "arrival": round(scheduled, 6),
                "sent": round(scheduled + outcome.behind_seconds[number], 6),
                "first_byte": None,
                "done": round(scheduled + latency, 6),
                "status": status,
                "texts": texts,
                "source_tokens": sum(self._source_tokens[text] for text in texts),
                "output_tokens": num_tokens or sum(map(self._count_tokens, answers)),
                "answers": answers,
            }


def read_runs(path: Path) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield the head of every run and its calls."""
    head: dict[str, Any] | None = None
    calls: list[dict[str, Any]] = []
    with path.open(encoding="utf-8") as file:
        for line in map(json.loads, file):
            if "window" not in line:
                calls.append(line)
                continue
            if head is not None:
                yield head, calls
            head, calls = line, []
    if head is not None:
        yield head, calls


def summary(head: Mapping[str, Any], calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a run's figures, computed from its calls as when they were measured."""
    window = Window(**head["window"])
    outcome = Outcome(
        calls=[(c["arrival"], c["done"] - c["arrival"], c["status"], c["output_tokens"]) for c in calls],
        wall_seconds=head["wall_seconds"],
    )
    return {
        **throughput(outcome, head["texts_per_call"]),
        **judge(outcome, window.since, window.until, window.slo_seconds),
        **_quality(head, calls),
    }


def _quality(head: Mapping[str, Any], calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    if not head.get("has_references"):
        return {}
    answers = [pair for call in calls for pair in zip(call["texts"], call["answers"], strict=False)]
    return quality_of(answers, held_out_references())


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def main(files: tuple[Path, ...]) -> None:
    """Print the figures of every run, computed again from its calls."""
    for path in files:
        rows = []
        for head, calls in read_runs(path):
            found = summary(head, calls)
            about = (head["run"], head.get("model", ""), head["contender"], head.get("kind", ""), str(head["seed"]))
            rows.append([*about, *(f"{found[name]:.4g}" if name in found else "-" for name in COLUMNS)])
        click.echo(markdown(("run", "model", "contender", "kind", "seed", *COLUMNS), rows))


if __name__ == "__main__":
    main()
