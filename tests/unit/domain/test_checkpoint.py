"""Checkpoints: who is notified, and how work is abandoned at one."""

import time

import pytest

from service.domain.checkpoint import checkpoint, checkpoints, done_within, paced


def test_outside_of_a_pool_checkpoints_do_nothing() -> None:
    checkpoint()
    assert list(paced(range(200))) == list(range(200))


def test_every_so_many_items_pass_a_checkpoint() -> None:
    passed: list[int] = []
    seen: list[int] = []
    with checkpoints(lambda: passed.append(len(seen))):
        seen.extend(paced(range(10), every=4))
        checkpoint()
    assert passed[:3] == [0, 4, 8] or len(passed) == 4
    assert seen == list(range(10))
    checkpoint()
    assert len(passed) == 4


def test_what_a_checkpoint_raises_ends_the_work() -> None:
    def end() -> None:
        raise TimeoutError

    with checkpoints(end), pytest.raises(TimeoutError):
        list(paced([1]))


def test_what_takes_too_long_is_given_up_at_a_checkpoint() -> None:
    num_rounds = 0

    def spin() -> None:
        nonlocal num_rounds
        while True:
            num_rounds += 1
            checkpoint()

    began = time.monotonic()
    assert not done_within(0.01, spin)
    assert num_rounds > 1
    assert time.monotonic() - began >= 0.01
    assert done_within(60.0, checkpoint)
