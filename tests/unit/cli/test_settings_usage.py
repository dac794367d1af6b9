"""Invalid flags and variables of commands that accept settings."""

import pytest

from service.cli.main import run


@pytest.mark.parametrize(
    ("arguments", "variables", "said"),
    [
        (["--trace-ratio", "2"], {}, "Invalid value for '--trace-ratio': 2.0 is not in the range"),
        (["--log-format", "xml"], {}, "'xml' is not one of 'text', 'json'"),
        (["--prot", "2"], {}, "No such option"),
        (["--tls-key", "k.pem"], {}, "dragoman: --tls-key needs --tls-certificate too.\n"),
        ([], {"DRAGOMAN_SERVE_PROT": "2"}, "did you mean 'DRAGOMAN_SERVE_PORT'?\n"),
        ([], {"DRAGOMAN_SERVE_LOG_TEXT": "perhaps"}, 'DRAGOMAN_SERVE_LOG_TEXT is "perhaps"; give true or false.\n'),
    ],
)
def test_they_are_usage_errors(
    arguments: list[str],
    variables: dict[str, str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    code = run(["config", *arguments])
    printed = capsys.readouterr()
    assert (code, printed.out) == (2, "")
    assert said in printed.err


def test_flags_have_their_help_range_and_default_from_the_setting(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "--admin-port INTEGER RANGE Port for the status page;" in text
    assert "[default: 9465; -1<=x<=65535]" in text
    assert "--reflection / --no-reflection" in text
    assert "Flags override the environment, which overrides the file." in text
