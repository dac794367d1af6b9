"""Tests get as much more time as the machine is slower."""

import pytest

from tests.patience import SLOWNESS, patient
from tests.servers import TIMEOUT_SECONDS


def test_no_bound_is_less_than_written() -> None:
    assert SLOWNESS >= 1
    assert patient(10) == 10 * SLOWNESS
    assert patient(30) == TIMEOUT_SECONDS


def test_each_test_has_it(request: pytest.FixtureRequest) -> None:
    timeout = request.node.get_closest_marker("timeout")
    assert timeout.args == (patient(120),)


@pytest.mark.timeout(50)
def test_one_with_a_time_of_its_own_has_it_too(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("timeout").args == (patient(50),)
