"""The command line's options for TLS and the API key, and errors for invalid ones."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from service.cli.command_error import CommandError
from service.cli.exit_codes import ExitCode
from service.cli.main import dragoman
from service.cli.options import API_KEY


def test_certificate_and_key_go_together(tmp_path: Path) -> None:
    for flag in ("--tls-certificate", "--tls-key"):
        result = CliRunner().invoke(dragoman, ["models", flag, str(tmp_path / "file.pem")])
        assert result.exit_code == ExitCode.USAGE
        assert result.output.splitlines()[-1] == "Error: --tls-certificate and --tls-key must be given together."


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(dragoman, ["models", "--tls-ca", str(tmp_path / "gone.crt")])
    assert isinstance(result.exception, CommandError)
    assert str(result.exception) == f"can't read {tmp_path / 'gone.crt'}: No such file or directory."
    assert result.exception.exit_code == ExitCode.NO_INPUT


@pytest.mark.parametrize("key", ["schlüssel", "two\nlines", "\x7f"])
def test_what_can_not_be_a_key_is_not_sent_nor_shown(key: str) -> None:
    result = CliRunner().invoke(dragoman, ["models"], env={API_KEY: key})
    assert result.exit_code == ExitCode.USAGE
    assert (
        result.output.splitlines()[-1] == f"Error: {API_KEY} holds no API key; they have letters, digits, '_' and '-'."
    )
    assert key not in result.output


def test_no_command_takes_the_key_as_a_flag() -> None:
    for name in ("translate", "detect", "models"):
        assert "--api-key" not in CliRunner().invoke(dragoman, [name, "--help"]).output
