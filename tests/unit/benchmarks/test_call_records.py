import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.call_records import CallLog, main, read_runs, summary
from benchmarks.quality import held_out_references
from click.testing import CliRunner

from benchmarks.load_generator import Load, Outcome
from benchmarks.serving_points import Window, judge
from benchmarks.workload import held_out_texts

WINDOW = Window(0.5, 3.0, 0.4)


def outcome_of(answers: list[list[str]]) -> Outcome:
    return Outcome(
        calls=[(0.1, 0.2, "OK", 5), (1.0, 0.3, "OK", 7), (2.0, 0.5, "OK", 9), (2.5, 0.0, "RESOURCE_EXHAUSTED", 0)],
        behind_seconds=[0.0, 0.01, 0.0, 0.0],
        first_texts=[3, 499, 3, 4],
        answers=answers,
        wall_seconds=4.0,
    )


def write(path: Path, answers: list[list[str]], **about: Any) -> dict[str, Any]:
    log = CallLog(path, lambda text: len(text.split()))
    keep = log.keeper(model="en-de", contender="ours", kind="sweep", **about)
    keep(Load("", 1.0, seed=6), Outcome(wall_seconds=1.0), Window(0.0, 1.0, 1.0))
    return keep(Load("", 3.0, rate=2.0, seed=7, texts_per_call=1), outcome_of(answers), WINDOW)


def test_a_call_says_when_it_was_to_come_was_sent_and_was_done(tmp_path: Path) -> None:
    found = write(tmp_path / "calls.jsonl", [["a"], ["b c"], ["d"], []])
    lines = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    call = lines[3]
    assert found["run"] == call["run"] == "0002"
    assert (call["arrival"], call["sent"], call["done"], call["first_byte"]) == (1.0, 1.01, 1.3, None)
    assert (call["status"], call["contender"], call["seed"]) == ("OK", "ours", 7)
    assert (call["texts"], call["answers"], call["output_tokens"]) == ([499], ["b c"], 7)
    assert call["source_tokens"] == len(held_out_texts()[499].split())
    assert found["tokens_per_second"] == 21 / 4


def test_figures_are_computed_again_as_they_were(tmp_path: Path) -> None:
    references = held_out_references()
    answers = [[references[3]], [references[499]], [references[3]], []]
    measured = write(tmp_path / "calls.jsonl", answers, has_references=True)
    [_, (head, calls)] = read_runs(tmp_path / "calls.jsonl")
    again = summary(head, calls)
    expected = judge(outcome_of(answers), WINDOW.since, WINDOW.until, WINDOW.slo_seconds)
    assert {name: again[name] for name in expected} == pytest.approx(expected)
    assert again["goodput"] == pytest.approx(1 / 2.5)
    assert (again["bleu"], again["chrf"]) == (measured["bleu"], measured["chrf"]) == (pytest.approx(100.0),) * 2
    assert again["tokens_per_second"] == measured["tokens_per_second"]


def test_a_server_that_counts_no_tokens_has_its_answers_counted(tmp_path: Path) -> None:
    log = CallLog(tmp_path / "calls.jsonl", lambda text: len(text.split()))
    outcome = Outcome([(0.0, 1.0, "OK", 0)], [0.0], [0], [["drei kleine Worte"]], wall_seconds=1.0)
    found = log.keeper(contender="theirs")(Load("", 1.0), outcome, Window(0.0, 1.0, 1.0))
    assert found["tokens_per_second"] == 3.0


def test_a_table_of_all_runs(tmp_path: Path) -> None:
    write(tmp_path / "calls.jsonl", [["a"], ["b c"], ["d"], []])
    result = CliRunner().invoke(main, [str(tmp_path / "calls.jsonl")])
    assert result.exit_code == 0
    assert "| 0002 | en-de | ours | sweep | 7 | 3 |" in result.output
