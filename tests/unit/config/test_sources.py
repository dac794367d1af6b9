"""The sources of settings, their precedence, and the errors about wrong ones."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings

from service.cli.settings import render_toml
from service.config.server_config import SETTINGS, ServerConfig, Setting
from service.config.sources import SettingsError, resolve

Write = Any


@pytest.fixture(autouse=True)
def own_environment() -> Iterator[None]:
    """Remove the settings in the environment in which the tests run."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("DRAGOMAN_")]:
            patch.delenv(name)
        yield


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_file(text: str | bytes) -> Path:
        path = tmp_path / "config.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return to_file


def problems(flags: dict[str, Any] | None = None, file: Path | None = None) -> tuple[list[str], bool]:
    with pytest.raises(SettingsError) as raised:
        resolve(flags or {}, file)
    return raised.value.problems, raised.value.is_in_file


def test_without_anything_all_is_default() -> None:
    settings = resolve({}, None)
    assert settings.config == ServerConfig()
    assert settings.sources == dict.fromkeys(SETTINGS, "default")


def test_flags_win_over_the_environment_and_that_over_the_file(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("port = 1\nmetrics_port = 2\nadmin_port = 3")
    monkeypatch.setenv("DRAGOMAN_SERVE_PORT", "11")
    monkeypatch.setenv("DRAGOMAN_SERVE_METRICS_PORT", "12")
    settings = resolve({"port": 21}, path)
    assert settings.config == ServerConfig(port=21, metrics_port=12, admin_port=3)
    assert {name: source for name, source in settings.sources.items() if source != "default"} == {
        "port": "flag --port",
        "metrics_port": "environment DRAGOMAN_SERVE_METRICS_PORT",
        "admin_port": f"file {path}",
    }


def test_a_file_has_the_types_of_toml(write: Write) -> None:
    path = write(
        'models = "m"\nload_model = ["a", "b c"]\nmodel_control = "explicit"\ngrace_seconds = 5\nlog_text = true'
    )
    assert resolve({}, path).config == ServerConfig(
        models=Path("m"), load_model=("a", "b c"), model_control="explicit", grace_seconds=5.0, log_text=True
    )


def test_the_environment_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {
        "MODELS": "m",
        "LOAD_MODEL": " a  b ",
        "HTTP_ORIGIN": "https://a.example https://b.example",
        "MODEL_CONTROL": "explicit",
        "GRACE_SECONDS": "5",
        "REFLECTION": "false",
        "LOG_TEXT": "1",
        "HOST": "",  # as if it were not set
        "API_KEYS": "keys.txt",
    }
    for name, value in variables.items():
        monkeypatch.setenv(f"DRAGOMAN_SERVE_{name}", value)
    assert resolve({}, None).config == ServerConfig(
        models=Path("m"),
        load_model=("a", "b"),
        http_origin=("https://a.example", "https://b.example"),
        model_control="explicit",
        grace_seconds=5.0,
        reflection=False,
        log_text=True,
        api_keys=Path("keys.txt"),
    )


def test_an_empty_path_undoes_what_the_file_says(write: Write) -> None:
    path = write('glossaries = "somewhere"')
    assert resolve({}, path).config.glossaries == Path("somewhere")
    assert resolve({"glossaries": ""}, path).config == ServerConfig()


def test_an_unknown_key_is_told_with_the_nearest(write: Write) -> None:
    path = write("max-slots = 3\n[server]\nport = 1")
    assert problems(file=path) == (
        [
            f"{path} has an unknown key 'max-slots'; did you mean 'max_slots'?",
            f"{path} has an unknown key 'server'; 'dragoman config' lists all of them.",
        ],
        True,
    )


def test_an_unknown_variable_is_told_with_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_SERVE_PROT", "1")
    monkeypatch.setenv("DRAGOMAN_TRANSLATE_TO", "de")  # another command's
    line = "the environment has an unknown variable 'DRAGOMAN_SERVE_PROT'; did you mean 'DRAGOMAN_SERVE_PORT'?"
    assert problems() == ([line], False)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("port = 0x" + "f" * 4000, "port in {} is a number of thousands of digits; give"),
        ("models" + ".a" * 900 + " = 1", "models in {} is {{'a': {{'a': {{'a': "),
        (f'"{"a" * 3000}" = 1', "{} has an unknown key '" + "a" * 57 + "...'"),
    ],
)
def test_a_problem_is_told_in_short_however_long_or_deep_the_value_is(write: Write, text: str, told: str) -> None:
    path = write(text)
    ((line,), _) = problems(file=path)
    assert line.startswith(told.format(path))
    assert len(line) < 300


def test_all_problems_are_told_at_once(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write('port = "x"\nreflection = 1\ndevice = "tpu"\nhost = 2026-01-01\nprot = 1')
    monkeypatch.setenv("DRAGOMAN_SERVE_TRACE_RATIO", "1.5")
    monkeypatch.setenv("DRAGOMAN_SERVE_MAX_SLOTS", "many")
    lines, is_in_file = problems({"cache_mib": -1}, path)
    assert is_in_file
    assert lines == [
        f"{path} has an unknown key 'prot'; did you mean 'port'?",
        f"host in {path} is 2026-01-01; give a text.",
        f'port in {path} is "x"; give a whole number from 0 to 65535.',
        f'device in {path} is "tpu"; give cpu or cuda.',
        f"reflection in {path} is 1; give true or false.",
        'DRAGOMAN_SERVE_MAX_SLOTS is "many"; give a whole number from 0 to 65536.',
        'DRAGOMAN_SERVE_TRACE_RATIO is "1.5"; give a number from 0 to 1.',
        "--cache-mib is -1; give a whole number from 0 to 1048576.",
    ]


def test_what_is_wrong_in_the_file_is_wrong_even_if_a_flag_wins(write: Write) -> None:
    (line,), is_in_file = problems({"port": 1}, write("port = -1"))
    assert is_in_file
    assert line.endswith("config.toml is -1; give a whole number from 0 to 65535.")


def test_a_value_with_a_line_end_of_unicodes_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_SERVE_LOG_FORMAT", "te\u2028xt\U000e0001")
    (line,), _ = problems({})
    assert line == 'DRAGOMAN_SERVE_LOG_FORMAT is "te\\u2028xt\\U000e0001"; give text or json.'


def test_a_long_value_is_cut(write: Write) -> None:
    (line,), _ = problems(file=write(f'port = "{"x" * 1000}"'))
    assert 'is "xxx' in line
    assert len(line) < 300


@pytest.mark.parametrize("content", [b"port 1", b"port = 1\nport = 2", b"\xff", b"a = " + b"[" * 100_000])
def test_what_is_not_toml_is_one_line(write: Write, content: bytes) -> None:
    (line,), is_in_file = problems(file=write(content))
    assert is_in_file
    assert "config.toml is not TOML: " in line
    assert "\n" not in line


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"
    assert problems(file=missing) == (
        [f"can't read the configuration file {missing}: No such file or directory."],
        True,
    )
    assert problems(file=tmp_path) == ([f"can't read the configuration file {tmp_path}: Is a directory."], True)


def test_what_is_needed_is_called_as_the_user_would_write_it(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write('tls_key = "k.pem"')
    assert problems(file=path) == ([f"tls_key in {path} needs tls_certificate too."], True)
    assert problems({"tls_client_ca": "ca.pem"}) == (["--tls-client-ca needs --tls-certificate too."], False)
    assert problems({"http_host": "0.0.0.0", "http_port": 8080}) == (
        ["--http-host needs --api-keys; to serve anyone who reaches it, give http_without_keys."],
        False,
    )
    monkeypatch.setenv("DRAGOMAN_SERVE_LOAD_MODEL", "tiny")
    assert problems() == (
        ["DRAGOMAN_SERVE_LOAD_MODEL needs DRAGOMAN_SERVE_MODEL_CONTROL explicit; without it all models are loaded."],
        False,
    )


def test_what_is_needed_may_come_from_elsewhere(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_SERVE_TLS_CERTIFICATE", "c.pem")
    assert resolve({}, write('tls_key = "k.pem"')).config.tls_certificate == Path("c.pem")


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)


def values_of(setting: Setting) -> st.SearchStrategy[Any]:
    """Generate any valid value of a setting, as written on the command line."""
    if setting.choices:
        return st.sampled_from(setting.choices)
    if setting.kind is int and setting.least is not None and setting.most is not None:
        return st.integers(int(setting.least), int(setting.most))
    if setting.kind is float:
        return st.floats(setting.least, setting.most)
    if setting.kind is tuple:
        return st.lists(TEXT, max_size=3).map(tuple)
    return st.booleans() if setting.kind is bool else TEXT


@given(st.fixed_dictionaries({}, optional={name: values_of(setting) for name, setting in SETTINGS.items()}))
@settings(max_examples=40, deadline=None)
@example({"host": '\x7f\x80\x85\u2028"\\\n\t\r😀', "grace_seconds": 1e-05, "models": "a # b"})
def test_what_is_printed_is_a_file_of_the_same_settings(flags: dict[str, Any]) -> None:
    try:
        effective = resolve(flags, None)
    except SettingsError:
        flags |= {"model_control": "explicit", "http_without_keys": True, "glossaries": "g"}
        flags |= dict.fromkeys(("tls_certificate", "tls_key"), "a.pem")
        effective = resolve(flags, None)
    with tempfile.NamedTemporaryFile() as file:
        file.write(render_toml(effective).encode())
        file.flush()
        again = resolve({}, Path(file.name))
    assert again.config == effective.config
    assert set(again.sources.values()) == {f"file {file.name}"}
