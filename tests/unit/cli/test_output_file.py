"""Resuming outputs."""

import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.cli.command_error import CommandError
from service.cli.lines import read_lines
from service.cli.output_file import open_output


@given(st.lists(st.binary(max_size=4).map(lambda raw: raw.replace(b"\n", b"")), max_size=20), st.integers(0, 60))
@settings(derandomize=True, max_examples=100, deadline=None)
def test_a_cut_file_is_completed(tmp_path_factory: pytest.TempPathFactory, rows: list[bytes], cut: int) -> None:
    whole = b"".join(row + b"\n" for row in rows)
    path = tmp_path_factory.mktemp("cut") / "out"
    path.write_bytes(whole[:cut])
    lines = read_lines(io.BytesIO(b"".join(b"%d\n" % number for number in range(len(rows)))))
    with open_output(path, None, lines) as (stream, num_done):
        assert num_done == whole[:cut].count(b"\n")
        for line in lines:
            stream.write(rows[int(line.text)] + b"\n")
    assert path.read_bytes() == whole


def test_a_large_file_is_read_in_blocks(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"x" * (1 << 20) + b"\n" + b"y" * (3 << 20))
    with open_output(path, None, read_lines(io.BytesIO(b"a\nb\n"))) as (_, num_done):
        assert num_done == 1
    assert path.stat().st_size == (1 << 20) + 1


def test_what_is_not_from_this_input_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"a\nb\nc\nhalf")
    with (
        pytest.raises(CommandError, match="has 3 lines and the input only 2") as raised,
        open_output(path, None, read_lines(io.BytesIO(b"1\n2\n"))),
    ):
        pass
    assert raised.value.exit_code == 65
    assert path.read_bytes() == b"a\nb\nc\nhalf"


def test_only_files_can_be_gone_on_with() -> None:
    device = Path("/dev/null")
    with open_output(device) as (_, num_done):
        assert num_done == 0
    with pytest.raises(CommandError, match="/dev/null is not a regular file"), open_output(device, None, iter([])):
        pass
