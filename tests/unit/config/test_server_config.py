"""The definition of the settings, and the documents that must agree with it."""

import dataclasses
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from service.config.server_config import NEEDS, SETTINGS, ServerConfig, wrong_settings
from service.config.sources import resolve, toml_value
from service.domain.translation import OwnPlaceholder
from service.server.optional_parts import WrongPlaceholder, placeholders_of
from tests.servers import REPOSITORY

ENTRY = re.compile(r"^- `--([a-z-]+)` \(`(DRAGOMAN_SERVE_[A-Z_]+)`, `(.*?)`\): (.+)", re.MULTILINE)
EXAMPLE = REPOSITORY / "deploy" / "config.toml"


def test_every_setting_is_described_and_bounded() -> None:
    assert list(SETTINGS) == [field.name for field in dataclasses.fields(ServerConfig)]
    for name, setting in SETTINGS.items():
        assert setting.meaning.endswith((".", "...", "(nv_inference_*).")), name
        assert setting.default == getattr(ServerConfig(), name)
        if setting.kind in (int, float):
            assert setting.least is not None, name
            assert setting.most is not None, name
            assert setting.least <= setting.default <= setting.most


@pytest.mark.parametrize("name", [name for name, setting in SETTINGS.items() if setting.least is not None])
def test_a_number_is_taken_up_to_its_bounds(name: str) -> None:
    setting = SETTINGS[name]
    assert setting.least is not None
    assert setting.most is not None
    least, most = setting.kind(setting.least), setting.kind(setting.most)
    assert wrong_settings({name: least}) == wrong_settings({name: most}) == []
    assert wrong_settings({name: least - 1}) == wrong_settings({name: most + 1}) == [name]
    assert wrong_settings({name: "1"}) == wrong_settings({name: True}) == wrong_settings({name: float("nan")}) == [name]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("models", 3),
        ("glossaries", False),
        ("model_control", "sometimes"),
        ("load_model", "tiny"),
        ("load_model", [1]),
        ("host", None),
        ("reflection", 1),
        ("reflection", "off"),
        ("log_level", "WARNING"),
        ("max_slots", 1.0),
        ("trace_ratio", float("inf")),
    ],
)
def test_a_value_of_another_type_is_refused(name: str, value: object) -> None:
    assert wrong_settings({name: value}) == [name]


def test_all_that_is_wrong_is_told_at_once() -> None:
    assert wrong_settings({"port": -1, "host": "::1", "trace_ratio": 1.5, "load_model": [1, 2]}) == [
        "load_model",
        "port",
        "trace_ratio",
    ]


def test_it_can_be_neither_changed_nor_made_wrong() -> None:
    config = ServerConfig(port=0)
    assert dataclasses.replace(config, metrics_port=0) == ServerConfig(port=0, metrics_port=0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.port = 1  # type: ignore[misc]
    with pytest.raises(ValidationError):
        dataclasses.replace(config, port=65_536)
    with pytest.raises(ValidationError):
        ServerConfig(prot=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("need", NEEDS, ids=lambda need: need.setting)
def test_a_setting_that_needs_another_is_refused_without(need: Any) -> None:
    values: Any = {"load_model": ("tiny",), "http_host": "0.0.0.0"}.get(need.setting, Path("a.pem"))
    others: Any = {"http_host": {"http_port": 8080}}.get(need.setting, {})
    with pytest.raises(ValidationError, match=f"{need.setting} needs {need.other}"):
        ServerConfig(**{need.setting: values}, **others)


@pytest.mark.parametrize(
    ("host", "is_exposed"),
    [
        *((host, False) for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost")),
        *((host, True) for host in ("0.0.0.0", "::", "192.0.2.1", "example.org", "")),
    ],
)
def test_calls_over_http_from_elsewhere_need_keys_or_a_word(host: str, is_exposed: bool) -> None:
    assert ServerConfig(http_host=host).http_host == host  # there is no such port
    assert ServerConfig(http_host=host, http_port=0, http_without_keys=True).http_host == host
    assert ServerConfig(http_host=host, http_port=0, api_keys=Path("keys.toml")).http_host == host
    if is_exposed:
        with pytest.raises(ValidationError, match="http_host needs api_keys"):
            ServerConfig(http_host=host, http_port=0)
    else:
        assert ServerConfig(http_host=host, http_port=0).http_host == host


def test_what_needs_each_other_is_fine_together() -> None:
    pem = Path("a.pem")
    assert ServerConfig(tls_certificate=pem, tls_key=pem, tls_client_ca=pem).tls_client_ca == pem
    assert ServerConfig(load_model=("*",), model_control="explicit").load_model == ("*",)
    assert ServerConfig(load_model=()).model_control == "none"


def test_no_environment_reaches_a_config_that_is_made_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_SERVE_PORT", "1")
    assert ServerConfig().port == 50051


def test_the_table_of_settings_is_that_of_the_code() -> None:
    table = table_of((REPOSITORY / "docs" / "operations.md").read_text(encoding="utf-8"))
    assert table == {name: (setting.variable, toml_value(setting.default)) for name, setting in SETTINGS.items()}


def test_a_setting_that_the_table_lacks_or_has_wrong_is_noticed() -> None:
    document = (REPOSITORY / "docs" / "operations.md").read_text(encoding="utf-8")
    right = table_of(document)
    assert table_of(document.replace("`50051`)", "`50052`)")) != right
    assert table_of(re.sub(r"- `--tls-key`.*\n", "", document)) != right


def table_of(document: str) -> dict[str, tuple[str, str]]:
    """Return the variable and the default of each setting that the section "Settings" lists."""
    section = document.partition("## Settings\n")[2].partition("\n## ")[0]
    return {
        flag.replace("-", "_"): (variable, default)
        for flag, variable, default, meaning in ENTRY.findall(section)
        if meaning.strip()
    }


def test_the_example_file_holds_every_setting_with_its_default(tmp_path: Path) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    assert tomllib.loads(text) == {}  # unedited, it changes nothing
    uncommented = re.sub(r"^# ([a-z_]+ = )", r"\1", text, flags=re.MULTILINE)
    assert list(tomllib.loads(uncommented)) == list(SETTINGS)
    path = tmp_path / "config.toml"
    path.write_text(uncommented, encoding="utf-8")
    assert resolve({}, path).config == resolve({}, EXAMPLE).config == ServerConfig()
    for setting in SETTINGS.values():
        assert f"\n# {setting.meaning}\n# {setting.name} = {toml_value(setting.default)}\n" in text


def test_placeholders_of_all_calls_are_checked_at_the_start() -> None:
    assert placeholders_of(ServerConfig()) == ()
    assert placeholders_of(ServerConfig(placeholder=("a+", r"\d"))) == (OwnPlaceholder("a+"), OwnPlaceholder(r"\d"))
    with pytest.raises(WrongPlaceholder, match=r"^the setting placeholder can't be used: placeholders\[1\] is '\('"):
        placeholders_of(ServerConfig(placeholder=("a", "(")))
