"""`Decode` records how much each token that it reads attends to the source, and changes nothing by that.

`test_decode.py` compares the bits of what is recorded.
"""

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.export.tiny_models import random_sources
from tests.kernels.fused_graphs import SHAPES, START_ID, Shape
from tests.kernels.mixed_batch import decode, mixed_sequences
from tests.kernels.operators import Floats, Ids, Operators
from tests.references.fused_model import FusedDecoder, FusedEncoder
from tests.unit.engine.recorder import new_sequence

wanting = partial(new_sequence, wants_attention=True)

RECORDING = [name for name, shape in SHAPES.items() if shape.recorded_heads]


@pytest.fixture(scope="module", params=RECORDING)
def shape(request: pytest.FixtureRequest) -> Shape:
    return SHAPES[request.param]


def recorded(operators: Operators, sequences: list[Any], places: list[int]) -> list[Floats]:
    """Decode sequences in rows that are not their slots; return the attention (T, S) of each one's tokens."""
    operators.attention[...] = np.nan
    decode(operators, sequences, places)
    found = []
    for sequence, place in zip(sequences, places, strict=False):
        length, slot = operators.state.rows["length"][place], operators.state.rows["slot"][place]
        own, num_sources = operators.attention[slot].reshape(-1), len(sequence.source_ids)
        found.append(own[: length * num_sources].reshape(length, num_sources).copy())
        assert not np.isnan(found[-1]).any()
        assert np.isnan(own).sum() == own.size - found[-1].size, "nothing is written beyond the tokens"
    return found


def test_it_is_the_mean_of_the_heads(operators: Operators, folder: Path, shape: Shape, sources: list[Ids]) -> None:
    """Of tokens that are chosen, and of those that are forced."""
    encoder, decoder = FusedEncoder(folder / "encoder.onnx"), FusedDecoder(folder / "decoder.onnx")
    forced = random_sources(shape.num_tokens, [12])[0]
    sequences = [
        wanting(source, max_output_tokens=20, target_prefix_ids=forced if number % 2 else ())
        for number, source in enumerate(sources)
    ]
    places = list(range(len(sequences)))[::-1]
    errors = []
    for place, source, own in zip(places, sources, recorded(operators, sequences, places), strict=True):
        state = decoder.start(encoder.encode(source), encoder.allowed(source))
        tokens = operators.output(place)
        for token in (START_ID, *tokens[:-1]):
            state.log_probs(token)
        np.testing.assert_allclose(own.sum(1), 1.0, rtol=1e-5)
        errors += np.abs(own - np.stack(state.attention)).max(1).tolist()
    assert len(errors) > 30
    assert np.median(errors) < 1e-5
    assert max(errors) < 0.1


def test_recording_changes_no_answer(
    kernels_library: Path, tmp_path: Path, shape: Shape, operators: Operators, sources: list[Ids]
) -> None:
    """Beams included, whose attention may be recorded too."""
    silent = Operators.tiny(kernels_library, tmp_path, shape, records=False)
    found = [answer[:-1] for answer in decode(operators, mixed_sequences(shape, sources))]
    assert found == [answer[:-1] for answer in decode(silent, mixed_sequences(shape, sources))]


def test_rows_that_do_not_want_it_leave_no_trace(operators: Operators, sources: list[Ids]) -> None:
    operators.attention[...] = np.nan
    decode(operators, [new_sequence(sources[0]), wanting(sources[0]), new_sequence(sources[0], beam_size=2)])
    assert [index for index, own in enumerate(operators.attention) if not np.isnan(own).all()] == [1]


def test_hypotheses_of_beams_know_the_slots_that_read_their_tokens(operators: Operators, sources: list[Ids]) -> None:
    """The attention that their history leads to is that of a row of its own which reads the same tokens."""
    beams = [wanting(source, beam_size=3, max_output_tokens=20, stops_early=False) for source in sources[:5]]
    places = np.random.default_rng(5).permutation(operators.state.num_slots).tolist()
    decode(operators, beams, places)
    state, found, num_switches = operators.state, [], 0
    memory = operators.attention.reshape(state.num_slots, -1)
    for sequence, first in zip(beams, range(0, 15, 3), strict=True):
        num_sources = len(sequence.source_ids)
        for place in places[first : first + state.rows["num_finished"][places[first]]]:
            length = state.hypotheses["length"][place]
            slots = state.history[state.num_slots + place, :length]
            num_switches += int(np.count_nonzero(np.diff(slots)))
            own = np.stack([memory[slot, step * num_sources :][:num_sources] for step, slot in enumerate(slots)])
            found.append((sequence, tuple(state.hypothesis_ids[place, :length].tolist()), own))
    assert len(found) > 10
    assert num_switches > 10
    for sequence, output_ids, own in found:
        read = wanting(sequence.source_ids, output_prefix_ids=output_ids[:-1], max_output_tokens=len(output_ids))
        (alone,) = recorded(operators, [read], [0])
        np.testing.assert_allclose(own, alone, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"shape": (19, 40, 64)}, r"attention is float32 \(19, 40, 64\), allowed: float32 \(20, any, any\)"),
        ({"shape": (21, 40, 64)}, r"attention is float32 \(21, 40, 64\), allowed: float32 \(20, any, any\)"),
        ({"shape": (20, 11, 64)}, "row 0: limit is 12, allowed: 1 to 11"),
        ({"shape": (20, 40, 2)}, "row 0: source_length is 3, allowed: 1 to 2"),
        ({"shape": (20, 40 * 64)}, "rank"),
        ({"dtype": np.float64}, "data type"),
        ({"shift": 1}, "attention is not aligned to 4 bytes"),
    ],
)
def test_attention_of_another_shape_is_refused(
    kernels_library: Path, tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    operators = small(kernels_library, tmp_path, SHAPES["as shipped"], change)
    with pytest.raises(Exception, match=says):
        operators.run()
    assert np.isnan(operators.attention).all()


@pytest.mark.parametrize(
    ("shape", "rows"), [((20, 12, 3), 20), ((0, 0, 0), 0), ((7, 0, 3), 0), ((20, 12, 0), 0), ((0, 12, 3), 0)]
)
def test_attention_that_fits_or_is_empty(
    kernels_library: Path, tmp_path: Path, shape: tuple[int, ...], rows: int
) -> None:
    operators = small(kernels_library, tmp_path, SHAPES["as shipped"], {"shape": shape})
    assert operators.run() > 0
    assert np.isnan(operators.attention).all() == (rows == 0)


@pytest.mark.parametrize("change", [{"recorded_layer": -1}, {"recorded_heads": ()}])
def test_a_graph_that_names_no_heads_records_nothing(
    kernels_library: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    shape = dataclasses.replace(SHAPES["as shipped"], **change)
    operators = small(kernels_library, tmp_path, shape, {})
    with pytest.raises(Exception, match="no heads are to be recorded"):
        operators.run()


def small(library: Path, folder: Path, shape: Shape, change: dict[str, Any]) -> Operators:
    """Return operators in which one row of three tokens and a limit of 12 waits, with some array for the attention."""
    operators = Operators.tiny(library, folder, shape, records=True)
    own = np.full(change.get("shape", operators.attention.shape), np.nan, change.get("dtype", np.float32))
    if "shift" in change:
        memory = np.empty(own.nbytes + change["shift"], np.uint8)
        shifted = memory[change["shift"] :].view(own.dtype).reshape(own.shape)
        shifted[...] = own
        own = shifted
    operators.attention = own
    operators.encode([(5, 6, 2)], [0])
    operators.join(wanting((5, 6, 2), max_output_tokens=12), [0], [0], 0)
    return operators
