"""What `dragoman bulk` refuses before it loads a model."""

from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner

from service.cli.exit_codes import ExitCode
from service.cli.failures import failure_of
from service.cli.main import dragoman
from service.engine.runtime.kernels import PATH


def test_without_the_kernels_library_it_ends_in_a_line(
    tiny_models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in.txt").write_text("a\n")
    monkeypatch.setenv(PATH, str(tmp_path / "none.so"))
    given = [str(tmp_path / "in.txt"), str(tmp_path / "out.txt"), "--to", "de", "--models", str(tiny_models)]
    result = CliRunner().invoke(dragoman, ["bulk", *given])
    assert result.exception is not None
    failure = failure_of(cast(Exception, result.exception))
    assert failure is not None, result.exception
    assert failure.code == ExitCode.CONFIG
    assert "none.so" in failure.lines[0]
    assert failure.lines[0].endswith("build it with 'make serve'")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "give --to, or a column with --to-column"),
        (("--to", "de", "--shard", "2/2"), "indices go from 0 to 1"),
        (("--to", "de", "--shard", "/2"), "neither of JOB_COMPLETION_INDEX and SLURM_ARRAY_TASK_ID"),
        (("--to", "de", "--shard", "0/2", "--force"), "delete the parts of other shards"),
        (("--to", "de", "--server", "127.0.0.1:1", "--models", "x"), "--models is for models in this process"),
        (("--to", "de", "--escape-formulas"), "is for csv and tsv; the output is text"),
    ],
)
def test_a_wrong_command_line_is_told_in_a_line(
    arguments: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "in.txt").write_text("a\n")
    result = CliRunner().invoke(dragoman, ["bulk", str(tmp_path / "in.txt"), str(tmp_path / "out.txt"), *arguments])
    assert (result.exit_code, told in result.output) == (ExitCode.USAGE, True), result.output
    assert [each.name for each in tmp_path.iterdir()] == ["in.txt"]
