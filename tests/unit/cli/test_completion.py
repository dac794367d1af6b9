"""Shell completion: the printed scripts, and what the real shell offers with that of bash."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from service.cli.main import dragoman
from tests.patience import patient
from tests.servers import REPOSITORY, environment

# What readline would do at the end of the line.
_ASK = """
source "$1"
COMP_WORDS=($2); COMP_CWORD=$3
compopt() { local IFS=' '; echo "compopt $*"; }
_dragoman_completion dragoman
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script_that_asks_by_the_variable(shell: str) -> None:
    result = CliRunner().invoke(dragoman, ["completion", shell], prog_name="dragoman")
    assert result.exit_code == 0
    assert f"_DRAGOMAN_COMPLETE={shell}_complete" in result.output


def test_an_unknown_shell_is_refused_with_the_known_ones() -> None:
    result = CliRunner().invoke(dragoman, ["completion", "csh"])
    assert result.exit_code == 2
    assert all(shell in result.output for shell in ("bash", "zsh", "fish"))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("dragoman tr", "translate"),
        ("dragoman serve --models m", "compopt -o default"),  # files and folders, which bash completes itself
    ],
)
def test_bash_offers_commands_and_files(tmp_path: Path, line: str, expected: str) -> None:
    script = tmp_path / "dragoman"
    script.write_text(CliRunner().invoke(dragoman, ["completion", "bash"], prog_name="dragoman").output)
    program = tmp_path / "bin" / "dragoman"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m service "$@"\n')
    program.chmod(0o755)
    given = environment()
    words = line.split()
    answer = subprocess.run(
        ["bash", "-c", _ASK, "bash", script, line, str(len(words) - 1)],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env={**given, "PATH": f"{program.parent}:{given['PATH']}"},
        timeout=patient(30),
    )
    assert expected in answer.stdout.splitlines(), answer.stderr
