"""Which process hangs, and how long the supervisor was there to see it."""

import pytest

from service.process.hangs import ALL_SILENT_SECONDS, HUNG_SECONDS, LOOK_SECONDS, Presence, hung
from tests.clock import Clock


@pytest.mark.parametrize(
    ("silent", "index"),
    [
        ([], None),
        ([0.5, HUNG_SECONDS - 0.1], None),
        ([0.5, HUNG_SECONDS, 1.0], 1),
        ([HUNG_SECONDS, 0.5, 3 * HUNG_SECONDS], 2),  # one at a time
        ([HUNG_SECONDS, 2 * HUNG_SECONDS], None),  # nobody runs: it is the machine
        ([ALL_SILENT_SECONDS, ALL_SILENT_SECONDS - 1], 0),
        ([ALL_SILENT_SECONDS], 0),
    ],
)
def test_the_one_that_is_silent_while_others_run_hangs(silent: list[float], index: int | None) -> None:
    assert hung(silent) == index


def test_time_for_which_the_machine_slept_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("service.process.hangs.time.monotonic", clock)
    presence = Presence()
    for _ in range(3):
        clock.now += LOOK_SECONDS
        presence.seconds()
    assert presence.seconds() == 3 * LOOK_SECONDS
    clock.now += 3600.0
    assert presence.seconds() == 5 * LOOK_SECONDS
