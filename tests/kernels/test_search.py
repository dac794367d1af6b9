"""The choice of tokens of mixed batches: what both searches agreed on while there were two."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from service.domain.translation import FinishReason
from tests.kernels import recorded
from tests.kernels.native_decoding import Answer, decode


def reasons(answers: Iterable[Answer]) -> set[FinishReason]:
    return {each.finish_reason for answer in answers if answer for each in answer}


@pytest.fixture(scope="module")
def expected() -> dict[str, list[Answer]]:
    return recorded.load()


def test_answers_are_those_that_were_recorded(search_library: Path, expected: dict[str, list[Answer]]) -> None:
    cases = recorded.cases()
    assert cases.keys() == expected.keys()
    for name, case in cases.items():
        answers = decode(search_library, case.sequences, case.model, **case.how)
        for answer, wanted in zip(answers, expected[name], strict=True):
            assert (answer is None) == (wanted is None), name
            for one, other in zip(answer or (), wanted or (), strict=True):
                assert (one.token_ids, one.finish_reason) == (other.token_ids, other.finish_reason), name
                assert one.score == pytest.approx(other.score, rel=1e-5, abs=1e-6, nan_ok=True), name


@pytest.mark.parametrize("beam_size", recorded.WIDTHS)
def test_every_way_to_end_was_recorded(expected: dict[str, list[Answer]], beam_size: int) -> None:
    answers = expected[f"ends {beam_size}"]
    assert None in answers
    assert {FinishReason.STOP, FinishReason.LENGTH} <= reasons(answers)
    assert beam_size == 8 or FinishReason.REPETITION in reasons(answers), "of eight beams, enough end in other ways"
