"""A batch of sequences of every kind, decoded by the operators in different ways."""

from collections.abc import Callable
from collections.abc import Sequence as Several

from service.bundle.fused_io import RUNNING, WANTS_ATTENTION
from service.engine.sequence import Sequence
from tests.kernels.fused_graphs import Shape
from tests.kernels.operators import Ids, Operators
from tests.unit.engine.recorder import new_sequence

Answer = tuple[object, ...]  # all that a caller could get of a sequence, in exact numbers


def mixed_sequences(shape: Shape, sources: Several[Ids], limit: int = 30) -> list[Sequence]:
    """Return sequences whose options take every way through the choice of tokens."""
    known = shape.num_tokens - 1
    kinds: tuple[dict[str, object], ...] = (
        {"wants_attention": True},
        {"return_scores": True},
        {"temperature": 1.0, "seed": 7, "return_scores": True},
        {"beam_size": 4, "num_hypotheses": 4, "stops_early": False, "wants_attention": True},
        {"beam_size": 2, "max_repeats": 1, "output_prefix_ids": (known,)},
        {"temperature": 0.7, "top_k": 3, "top_p": 0.9, "seed": 8, "repetition_penalty": 1.3},
        {"target_prefix_ids": (known, 0), "no_repeat_ngram_size": 2},
        {"beam_size": 3, "repetition_penalty": 1.5, "min_output_tokens": 5, "length_penalty": 0.5},
        {"max_repeats": 1, "max_output_tokens": 7},
    )
    return [
        new_sequence(source, **{"max_output_tokens": limit - number % 5, **kind})  # type: ignore[arg-type]
        for number, (source, kind) in enumerate(zip(sources, kinds, strict=False))
    ]


def run_once(operators: Operators) -> None:
    """Run until all have ended."""
    operators.run()


def decode(
    operators: Operators, sequences: Several[Sequence], rows: Several[int] | None = None,
    run: Callable[[Operators], None] = run_once,
) -> list[Answer]:  # fmt: skip
    """Encode and decode sequences, in the order of `rows`, which are also their slots; return their answers."""
    places = list(range(operators.state.num_slots) if rows is None else rows)
    joined = []
    for sequence in sequences:
        own, places = places[: sequence.num_slots], places[sequence.num_slots :]
        operators.encode([sequence.source_ids], [own[-1]])
        operators.join(sequence, own, own[::-1], own[-1])
        joined.append(own)
    run(operators)
    answers = [(*answer(operators, own), attention(operators, own[0])) for own in joined]
    operators.state.rows["status"] = 1  # all are free
    return answers


def attention(operators: Operators, row: int) -> bytes:
    """Return what was recorded of a row's tokens, of all that it read."""
    length, slot, num_sources = (int(operators.state.rows[name][row]) for name in ("length", "slot", "source_length"))
    is_recorded = operators.attention.size and operators.state.rows["flags"][row] & WANTS_ATTENTION
    return operators.attention[slot].reshape(-1)[: length * num_sources].tobytes() if is_recorded else b""


def answer(operators: Operators, rows: list[int]) -> Answer:
    """Return what is known of a sequence that has ended."""
    state = operators.state
    leader = state.rows[rows[0]]
    assert leader["status"] != RUNNING
    told = leader["status"].item(), leader["length"].item(), leader["excess"].item()
    if len(rows) == 1:
        return (*told, float(leader["log_prob"]), operators.output(rows[0]))
    finished, given_up = rows[: leader["num_finished"]], rows[: leader["num_given_up"]]
    places = [*finished, *(state.num_slots + row for row in given_up)]
    hypotheses = [
        (
            float(state.hypotheses["score"][place]),
            *state.hypothesis_ids[place, : state.hypotheses["length"][place]].tolist(),
        )
        for place in places
    ]
    excess = tuple(state.hypotheses["excess"][places].tolist())
    return (told[0], (len(finished), excess), *hypotheses)
