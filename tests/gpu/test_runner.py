"""The runner and the engine on the GPU in float16, compared with float32 on the CPU."""

import pytest

from service.engine.runtime.session import SessionConfig
from tests.unit.engine.runtime import half_precision
from tests.unit.engine.runtime.half_precision import Pair

CUDA = SessionConfig("cuda")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return Pair(tmp_path_factory.mktemp("bundles"), CUDA, max_slots=12)


def test_rows_go_on_through_joins_moves_and_copies(pair: Pair) -> None:
    half_precision.check_rows_through_joins_moves_and_copies(pair)


def test_a_failed_rows_leavings_do_not_reach_its_next_owner(pair: Pair) -> None:
    half_precision.check_a_failed_rows_leavings_do_not_reach_its_next_owner(pair)


def test_the_engines_outputs_have_the_scores_that_it_gives_them(pair: Pair) -> None:
    half_precision.check_the_engines_scores(pair)
