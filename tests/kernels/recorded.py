"""What the search answered in mixed batches of random options, when a search in Python and the one in C++ agreed on it.

`python -m tests.kernels.recorded` writes the file again, by the search of today: only where its meaning changes.
"""

import json
import math
import random
import tempfile
from collections.abc import Sequence as Several
from pathlib import Path
from typing import Any, NamedTuple

from service.domain.translation import FinishReason
from service.engine.sequence import DecodedHypothesis, Sequence
from tests.kernels.any_sequence import any_sequence
from tests.kernels.native_decoding import Answer, decode
from tests.kernels.native_search import compile_search
from tests.kernels.random_model import RandomModel
from tests.unit.engine.recorder import new_sequence

RECORDED = Path(__file__).with_name("recorded_searches.json")
NUM_SEEDS = 140
WIDTHS = (1, 2, 4, 8)


class Case(NamedTuple):
    """A batch, and how it is decoded."""

    sequences: list[Sequence]
    model: RandomModel
    how: dict[str, Any]


def any_case(seed: int) -> Case:
    """Return a batch of sequences of random options."""
    rng = random.Random(seed)
    num_tokens = rng.choice((4, 7, 20, 70))
    sequences = [any_sequence(rng, num_tokens) for _ in range(rng.randint(1, 12))]
    renormalizes = rng.random() < 0.3
    model = RandomModel(
        seed,
        num_tokens,
        has_ties=not renormalizes and rng.random() < 0.3,
        suppressed=rng.choice(((), (2,))),
        renormalizes=renormalizes,
        ends=rng.choice((-4.0, 0.0, 3.0)),
        breaks=[number for number in range(len(sequences)) if rng.random() < 0.1],
    )
    return Case(sequences, model, {"num_steps": rng.randint(1, 9), "renormalizes": renormalizes, "seed": seed})


def case_of_every_end(beam_size: int) -> Case:
    """Return a batch of which sequences end in every way that there is."""
    rng = random.Random(beam_size)
    asked: dict[str, Any] = {"beam_size": beam_size, "return_scores": True, "num_hypotheses": beam_size}
    sequences = [
        new_sequence((5, 6, 1), max_output_tokens=rng.randint(1, 20), max_repeats=rng.choice((0, 1)), **asked)
        for _ in range(60)
    ]
    named: dict[str, Any] = {"has_ties": False, "suppressed": (), "renormalizes": False}
    return Case(sequences, RandomModel(0, 4, ends=-2.0, breaks=range(0, 60, 3), **named), {})


def cases() -> dict[str, Case]:
    """Return all by name."""
    return {str(seed): any_case(seed) for seed in range(NUM_SEEDS)} | {
        f"ends {width}": case_of_every_end(width) for width in WIDTHS
    }


def plain(answer: Answer) -> Any:
    """Return an answer as JSON has it."""
    if answer is None:
        return None
    return [
        [list(each.token_ids), each.finish_reason.value, None if math.isnan(each.score) else float(f"{each.score:.8g}")]
        for each in answer
    ]


def answer_of(recorded: Any) -> Answer:
    """Undo `plain`."""
    if recorded is None:
        return None
    return tuple(
        DecodedHypothesis(tuple(token_ids), math.nan if score is None else score, FinishReason(reason))
        for token_ids, reason, score in recorded
    )


def load() -> dict[str, list[Answer]]:
    """Return all recorded answers by the names of their cases."""
    return {name: [answer_of(each) for each in answers] for name, answers in json.loads(RECORDED.read_text()).items()}


def record(library: Path) -> dict[str, Several[Any]]:
    """Return the answers of the search of today, as JSON has them."""
    return {
        name: [plain(answer) for answer in decode(library, case.sequences, case.model, **case.how)]
        for name, case in cases().items()
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        found = record(compile_search("g++", Path(folder)))
    lines = [f"{json.dumps(name)}: {json.dumps(answers, separators=(',', ':'))}" for name, answers in found.items()]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
