"""Text written by a separate thread: callers never wait, and omitted text is counted."""

import os
import threading
from collections.abc import Iterator

import pytest

from service.process.standard_streams import _MOST_WAITING_BYTES, QueuedText, write_all
from tests.patience import patient

LINE = "x" * 1023 + "\n"
WAIT_SECONDS = patient(30.0)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(writing)


def everything(reading: int, end: bytes) -> bytes:
    read = b""
    while not read.endswith(end):
        read += os.read(reading, 2**20)
    return read


def test_lines_come_in_order_and_are_waited_for(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    text = QueuedText(writing, lambda _: None)
    for number in range(100):
        print(f"line {number} ä\udc80", file=text)
    assert text.drain(WAIT_SECONDS)
    assert os.read(reading, 2**20).decode().splitlines() == [f"line {number} ä\\udc80" for number in range(100)]
    os.close(reading)


def test_who_prints_never_waits_and_what_is_left_out_is_told_when_lines_flow_again(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    told: list[int] = []
    flows = threading.Event()

    def tell(num_lines: int) -> None:
        told.append(num_lines)
        text.write("END")
        flows.set()

    text = QueuedText(writing, tell)
    num_lines = 2 * _MOST_WAITING_BYTES // len(LINE)
    for _ in range(num_lines):
        text.write(LINE)
    assert not text.drain(0.01)
    read = everything(reading, b"END")
    assert flows.wait(WAIT_SECONDS)
    assert told == [num_lines - read.count(b"\n")]
    assert _MOST_WAITING_BYTES <= len(read) < 1.1 * _MOST_WAITING_BYTES
    os.close(reading)


def test_a_line_longer_than_the_queue_is_written_when_nothing_waits(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    text = QueuedText(writing, lambda _: None)
    text.write("x" * 2 * _MOST_WAITING_BYTES + "\n")
    assert len(everything(reading, b"\n")) == 2 * _MOST_WAITING_BYTES + 1
    os.close(reading)


def test_lines_that_can_t_be_written_are_missing_and_the_next_ones_are_not(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    told: list[int] = []
    full = os.open("/dev/full", os.O_WRONLY)
    text = QueuedText(full, told.append)
    text.write("a\nb\n")
    assert text.drain(WAIT_SECONDS)
    os.dup2(writing, full)  # as if there were space again
    text.write("c\n")
    assert text.drain(WAIT_SECONDS)
    assert (told, os.read(reading, 100)) == ([2], b"c\n")
    os.close(reading)


def test_a_descriptor_that_does_not_wait_is_written_whole(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.set_blocking(writing, False)
    data = b"x" * 2**20 + b"\n"
    writer = threading.Thread(target=write_all, args=(writing, data))
    writer.start()
    assert everything(reading, b"\n") == data
    writer.join(WAIT_SECONDS)
    os.close(reading)
