"""All settings of the server: names, allowed values, defaults and descriptions.

Flags, their help, the environment, the configuration file and the tests of the documentation are derived from this.
"""

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, get_args, get_origin

from pydantic import BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass as validated
from pydantic.fields import FieldInfo

ENVIRONMENT_PREFIX = "DRAGOMAN_SERVE_"
NONE = "none"  # of lists that are not empty by default

_MAX_PORT: Final = 65_535
_MAX_COUNT: Final = 1_000_000
_DAY_SECONDS: Final = 86_400.0
_GIB: Final = 2**30


def _value(default: Any, description: str) -> Any:
    return Field(default=default, description=description)


def _number(default: float, description: str, least: float, most: float) -> Any:
    return Field(default=default, ge=least, le=most, description=description)


def _seconds(default: float, description: str, least: float = 0.0) -> Any:
    return _number(default, description, least, _DAY_SECONDS)


def _port(default: int, description: str, least: int = 0) -> Any:
    return _number(default, description, least, _MAX_PORT)


def _share(default: float, description: str) -> Any:
    return _number(default, description, 0.0, 1.0)


def _lax(default: Any, description: str) -> Any:
    """Return a field of paths or lists, given as text or as TOML's lists."""
    return Field(default=default, strict=False, description=description)


# An empty text means no path. Thus each setting has a value that can be written in a file.
_OptionalPath = Annotated[Path | None, BeforeValidator(lambda value: None if value == "" else value)]


@validated(frozen=True, slots=True, config=ConfigDict(strict=True, extra="forbid"))
class ServerConfig:
    """The settings of `dragoman serve`; each field's description is the help of its flag.

    With explicit `model_control`, SIGHUP and `reload_seconds` reload glossaries only. `grace_seconds` also limits how
    long a replaced version may finish its calls. TLS files may be replaced at run time.
    """

    models: Path = _lax(Path("models"), "A bundle, or a repository <root>/<model>/<version>/.")
    glossaries: _OptionalPath = _lax(None, "A folder of glossaries: products.en-de.tsv, ...")
    max_versions: int = _number(1, "How many of each model's highest versions to serve.", 1, _MAX_COUNT)
    reload_seconds: float = _seconds(0.0, "Interval at which to look for new models; 0: only on SIGHUP.")
    model_control: Literal["none", "explicit"] = _value(
        "none", "explicit: load and unload models only by KServe's calls."
    )
    load_model: tuple[str, ...] = _lax((), "With explicit control: a model to load at startup, or * for all.")
    placeholder: tuple[str, ...] = _lax((), "A regular expression (RE2); text that it matches is kept unchanged.")
    pivot_language: tuple[str, ...] = _lax(
        ("en",), "A language through which two models translate pairs that no model has; none: no such pairs."
    )
    host: str = _value("127.0.0.1", "Address to listen on; 0.0.0.0 for all interfaces.")
    port: int = _port(50051, "Port for gRPC; 0 for any free one.")
    http_host: str = _value("127.0.0.1", "Address for calls over HTTP; any that other machines reach needs api_keys.")
    http_port: int = _port(-1, "Port for calls over HTTP; 0 for any free one, -1 for none.", least=-1)
    http_without_keys: bool = _value(False, "Serve HTTP without API keys even if other machines reach http_host.")
    http_url: str = _value(
        "", "URL at which callers reach the HTTP port, such as https://mt.example.org, for links in answers."
    )
    http_prefix: str = _value("", "Path prefix that a proxy keeps, such as /mt; paths without it work, too.")
    http_origin: tuple[str, ...] = _lax((), "A web site whose pages may call, such as https://example.org; * for all.")
    reuse_port: bool = _value(
        False, "Share the ports for gRPC and HTTP with other servers of this user that do so, too."
    )
    metrics_host: str = _value("127.0.0.1", "Address for /metrics, /readyz and /livez.")
    metrics_port: int = _port(9464, "Port for /metrics, /readyz and /livez; 0 for any free one.")
    device: Literal["cpu", "cuda"] = _value("cpu", "Device to run the model on.")
    num_threads: int = _number(0, "Threads for running a model; 0: one per CPU that the process may use.", 0, 1024)
    max_slots: int = _number(
        0, "Hypotheses decoded at the same time; 0: as many as help here, measured for each model.", 0, 65_536
    )
    max_waiting: int = _number(4096, "Segments that may wait for a slot before calls are rejected.", 1, _MAX_COUNT)
    max_queue_seconds: float = _seconds(
        0.0, "Reject calls that would wait longer; 0: 30 s, or from 0.25 s up while a queue persists."
    )
    stuck_turn_seconds: float = _seconds(
        60.0, "Terminate a run of the model that takes longer, and restart the engine.", least=0.1
    )
    cache_mib: int = _number(0, "Memory for cached translations, in MiB; 0: no cache.", 0, 1_048_576)
    check_numbers: bool = _value(
        True, "Keep identifiers, and correct or flag changed numbers, unless a call says otherwise."
    )
    default_deadline_seconds: float = _seconds(60.0, "Deadline of calls that set none.", least=0.001)
    drain_delay_seconds: float = _seconds(
        0.0, "On a stop signal: time to keep serving, not ready, until load balancers notice."
    )
    grace_seconds: float = _seconds(30.0, "On a stop signal: time for accepted calls to finish.")
    max_connection_age_seconds: float = _seconds(0.0, "Ask clients to reconnect after this time; 0: never.")
    admin_host: str = _value("127.0.0.1", "Address for the status page and the operators' calls.")
    admin_port: int = _port(9465, "Port for the status page; 0 for any free one, -1 for none.", least=-1)
    tls_certificate: _OptionalPath = _lax(None, "The server's certificate chain (PEM), for gRPC and HTTP; needs a key.")
    tls_key: _OptionalPath = _lax(None, "The certificate's private key (PEM).")
    tls_client_ca: _OptionalPath = _lax(
        None, "Certificate authorities (PEM), one of which must have signed the caller's certificate."
    )
    api_keys: _OptionalPath = _lax(None, "A file of hashed API keys and their quotas; callers then need a key.")
    reflection: bool = _value(True, "Describe the API by gRPC reflection.")
    max_connections: int = _number(
        10_000, "Maximum connections over gRPC, and over HTTP; for each further one, one is closed.", 1, _MAX_COUNT
    )
    max_request_bytes: int = _number(2**20, "Maximum size of a call's message, in bytes.", 1024, _GIB)
    max_bytes_in_flight_mib: int = _number(
        256,
        "Memory for the messages and answers of all calls together, in MiB; further calls are rejected.",
        1,
        1_048_576,
    )
    max_characters: int = _number(128 * 2**10, "Maximum characters in all texts of a call together.", 1, _GIB)
    max_answer_characters: int = _number(
        2**20, "Maximum characters in an answer, with all hypotheses; segments and alignments count as well.", 1, _GIB
    )
    max_metadata_bytes: int = _number(16 * 2**10, "Maximum size of a call's metadata, in bytes.", 1024, 2**24)
    triton_metrics: bool = _value(False, "Also provide the metrics that Triton's dashboards use (nv_inference_*).")
    otlp_endpoint: str = _value("", "Send spans to this OpenTelemetry collector, such as http://127.0.0.1:4317.")
    trace_ratio: float = _share(0.0, "Share of calls to trace, of those that arrive without a sampling decision.")
    access_log_ratio: float = _share(0.0, "Share of finished calls to log.")
    log_text: bool = _value(False, "Also log the texts of calls; otherwise they are never logged.")
    log_format: Literal["text", "json"] = _value("text", "Format of log lines.")
    log_level: Literal["debug", "info", "warning", "error"] = _value(
        "warning", "Lowest level to log to standard error."
    )

    @property
    def is_explicit(self) -> bool:
        return self.model_control == "explicit"

    @property
    def pivot_languages(self) -> tuple[str, ...]:
        return () if NONE in self.pivot_language else self.pivot_language

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        for need in unmet_needs({name: getattr(self, name) for name in SETTINGS}):
            raise ValueError(f"{need.setting} needs {need.other} {need.value}".rstrip())
        return self


@dataclass(frozen=True, slots=True)
class Need:
    """A setting that requires another one to be set, to `value` if that is given; `otherwise` is the reason.

    It applies if the setting itself is set, or if `applies` says so of the values of all settings.
    """

    setting: str
    other: str
    value: str = ""
    otherwise: str = ""
    applies: Callable[[Mapping[str, Any]], bool] | None = None

    def is_met(self, values: Mapping[str, Any]) -> bool:
        other = values[self.other]
        needed = bool(values[self.setting]) if self.applies is None else self.applies(values)
        return not needed or (other == self.value if self.value else bool(other))


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return False


def _is_exposed(values: Mapping[str, Any]) -> bool:
    return values["http_port"] >= 0 and not values["http_without_keys"] and not is_loopback(values["http_host"])


NEEDS = (
    Need("load_model", "model_control", "explicit", "without it all models are loaded"),
    Need("tls_certificate", "tls_key"),
    Need("tls_key", "tls_certificate"),
    Need("tls_client_ca", "tls_certificate"),
    Need(
        "http_host", "api_keys", otherwise="to serve anyone who reaches it, give http_without_keys", applies=_is_exposed
    ),
)


def unmet_needs(values: Mapping[str, Any]) -> Iterator[Need]:
    return (need for need in NEEDS if not need.is_met(values))


@dataclass(frozen=True, slots=True)
class Setting:
    """A field of `ServerConfig` in plain terms. `kind` is bool, int, float, str, Path or tuple (of texts)."""

    name: str
    kind: type
    default: Any
    meaning: str
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return ENVIRONMENT_PREFIX + self.name.upper()

    @property
    def allowed(self) -> str:
        """Return its allowed values, for a sentence that begins with "give"."""
        if self.choices:
            return " or ".join(self.choices)
        if self.kind in (int, float):
            number = "a whole number" if self.kind is int else "a number"
            return f"{number} from {self.least:.15g} to {self.most:.15g}"
        return {bool: "true or false", Path: "a path", tuple: "a list of names"}.get(self.kind, "a text")

    def value_of(self, text: str) -> Any:
        """Return the value that a text of the environment stands for, or the text if it stands for none."""
        if self.kind is tuple:
            return tuple(text.split())
        if self.kind not in (bool, int, float):
            return text
        try:
            return TypeAdapter(self.kind).validate_python(text)
        except ValidationError:
            return text


def _setting(name: str, field: FieldInfo) -> Setting:
    bounds = {end: getattr(each, end) for each in field.metadata for end in ("ge", "le") if hasattr(each, end)}
    is_choice = get_origin(field.annotation) is Literal
    choices = get_args(field.annotation) if is_choice else ()
    kinds = (tuple, Path, bool, int, float, str)
    parts = {str} if is_choice else {field.annotation, get_origin(field.annotation), *get_args(field.annotation)}
    kind = next(kind for kind in kinds if kind in parts)
    return Setting(name, kind, field.default, field.description or "", choices, bounds.get("ge"), bounds.get("le"))


SETTINGS: Mapping[str, Setting] = {
    name: _setting(name, field)
    for name, field in ServerConfig.__pydantic_fields__.items()  # type: ignore[attr-defined]
}


def wrong_settings(values: Mapping[str, Any]) -> list[str]:
    """Return the names of settings, all of them known, that have the wrong type or are out of range."""
    try:
        ServerConfig(**values)
    except ValidationError as error:
        return list(dict.fromkeys(str(problem["loc"][0]) for problem in error.errors() if problem["loc"]))
    return []
