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

# An empty text means no path. Thus each setting has a value that can be written in a file.
_OptionalPath = Annotated[Path | None, BeforeValidator(lambda value: None if value == "" else value)]


@validated(frozen=True, slots=True, config=ConfigDict(strict=True, extra="forbid"))
class ServerConfig:
    """The settings of `dragoman serve`; each field's description is the help of its flag.

    With `model_control` "explicit", SIGHUP and `reload_seconds` apply to glossaries only. `grace_seconds` is also the
    time that a replaced version has to finish its calls. The files of TLS may be replaced while the server runs.

    Raises:
        ValidationError: a value has the wrong type or is out of range, or a setting requires another (`NEEDS`).
    """

    models: Path = Field(
        default=Path("models"), strict=False, description="A bundle, or a repository <root>/<model>/<version>/."
    )
    glossaries: _OptionalPath = Field(
        default=None, strict=False, description="A folder of glossaries: products.en-de.tsv, ..."
    )
    max_versions: int = Field(
        default=1, ge=1, le=_MAX_COUNT, description="How many of each model's highest versions to serve."
    )
    reload_seconds: float = Field(
        default=0.0, ge=0.0, le=_DAY_SECONDS, description="Interval at which to look for new models; 0: only on SIGHUP."
    )
    model_control: Literal["none", "explicit"] = Field(
        default="none", description="explicit: load and unload models only by KServe's calls."
    )
    load_model: tuple[str, ...] = Field(
        default=(), strict=False, description="With explicit control: a model to load at startup, or * for all."
    )
    placeholder: tuple[str, ...] = Field(
        default=(), strict=False, description="A regular expression of RE2: what it matches in texts stays as it is."
    )
    pivot_language: tuple[str, ...] = Field(
        default=("en",),
        strict=False,
        description="A language by way of which two models translate a pair that none has; none: no such pairs.",
    )
    host: str = Field(default="127.0.0.1", description="Address to listen on; 0.0.0.0 for all interfaces.")
    port: int = Field(default=50051, ge=0, le=_MAX_PORT, description="Port for gRPC; 0 for any free one.")
    http_host: str = Field(default="127.0.0.1", description="Address for calls over HTTP; elsewhere it needs api_keys.")
    http_port: int = Field(
        default=-1, ge=-1, le=_MAX_PORT, description="Port for calls over HTTP; 0 for any free one, -1 for none."
    )
    http_without_keys: bool = Field(
        default=False, description="Let anyone who reaches http_host call, if that is not only this machine."
    )
    http_url: str = Field(
        default="",
        description="How callers reach the HTTP port, such as https://mt.example.org, for addresses in answers.",
    )
    http_prefix: str = Field(
        default="",
        description="Path that a proxy leaves before those of calls, such as /mt; without it they work, too.",
    )
    http_origin: tuple[str, ...] = Field(
        default=(), strict=False, description="A web site whose pages may call, such as https://example.org; * for all."
    )
    reuse_port: bool = Field(
        default=False, description="Share the ports for gRPC and HTTP with other servers of this user that do so, too."
    )
    metrics_host: str = Field(default="127.0.0.1", description="Address for /metrics, /readyz and /livez.")
    metrics_port: int = Field(
        default=9464, ge=0, le=_MAX_PORT, description="Port for /metrics, /readyz and /livez; 0 for any free one."
    )
    device: Literal["cpu", "cuda"] = Field(default="cpu", description="Device to run the model on.")
    num_threads: int = Field(
        default=0, ge=0, le=1024, description="Threads for running a model; 0: one per CPU that the process may use."
    )
    max_slots: int = Field(
        default=0,
        ge=0,
        le=65_536,
        description="Hypotheses decoded at the same time; 0: as many as are worthwhile here, measured for each model.",
    )
    max_waiting: int = Field(
        default=4096, ge=1, le=_MAX_COUNT, description="Segments that may wait for a slot before calls are rejected."
    )
    max_queue_seconds: float = Field(
        default=0.0,
        ge=0.0,
        le=_DAY_SECONDS,
        description="Reject calls that would wait longer; 0: than 30 s, or 0.25 s and more with a standing queue.",
    )
    stuck_turn_seconds: float = Field(
        default=60.0,
        ge=0.1,
        le=_DAY_SECONDS,
        description="Terminate a run of the model that takes longer, and restart the engine.",
    )
    cache_mib: int = Field(
        default=0, ge=0, le=1_048_576, description="Memory for cached translations, in MiB; 0: no cache."
    )
    check_numbers: bool = Field(
        default=True, description="Keep identifiers, and correct or flag changed numbers, where calls don't say."
    )
    default_deadline_seconds: float = Field(
        default=60.0, ge=0.001, le=_DAY_SECONDS, description="Deadline of calls that set none."
    )
    drain_delay_seconds: float = Field(
        default=0.0,
        ge=0.0,
        le=_DAY_SECONDS,
        description="On a stop signal: time to keep serving, not ready, until load balancers notice.",
    )
    grace_seconds: float = Field(
        default=30.0, ge=0.0, le=_DAY_SECONDS, description="On a stop signal: time for accepted calls to finish."
    )
    max_connection_age_seconds: float = Field(
        default=0.0, ge=0.0, le=_DAY_SECONDS, description="Ask clients to reconnect after this time; 0: never."
    )
    admin_host: str = Field(default="127.0.0.1", description="Address for the status page and the operators' calls.")
    admin_port: int = Field(
        default=9465, ge=-1, le=_MAX_PORT, description="Port for the status page; 0 for any free one, -1 for none."
    )
    tls_certificate: _OptionalPath = Field(
        default=None, strict=False, description="The server's certificate chain (PEM); gRPC then speaks TLS."
    )
    tls_key: _OptionalPath = Field(default=None, strict=False, description="The certificate's private key (PEM).")
    tls_client_ca: _OptionalPath = Field(
        default=None,
        strict=False,
        description="Certificate authorities (PEM), one of which must have signed the caller's certificate.",
    )
    api_keys: _OptionalPath = Field(
        default=None, strict=False, description="A file of hashed API keys and their quotas; callers then need a key."
    )
    reflection: bool = Field(default=True, description="Describe the API by gRPC reflection.")
    max_connections: int = Field(
        default=10_000, ge=1, le=_MAX_COUNT, description="Maximum gRPC connections; more are closed immediately."
    )
    max_request_bytes: int = Field(
        default=2**20, ge=1024, le=_GIB, description="Maximum size of a call's message, in bytes."
    )
    max_bytes_in_flight_mib: int = Field(
        default=256,
        ge=1,
        le=1_048_576,
        description="Memory for the messages and answers of all calls together, in MiB; further calls are rejected.",
    )
    max_characters: int = Field(
        default=128 * 2**10, ge=1, le=_GIB, description="Maximum characters in all texts of a call together."
    )
    max_answer_characters: int = Field(
        default=2**20,
        ge=1,
        le=_GIB,
        description="Maximum characters in an answer, with all hypotheses; segments and alignments count as well.",
    )
    max_metadata_bytes: int = Field(
        default=16 * 2**10, ge=1024, le=2**24, description="Maximum size of a call's metadata, in bytes."
    )
    triton_metrics: bool = Field(
        default=False, description="Also provide the metrics that Triton's dashboards use (nv_inference_*)."
    )
    otlp_endpoint: str = Field(
        default="", description="Send spans to this OpenTelemetry collector, such as http://127.0.0.1:4317."
    )
    trace_ratio: float = Field(
        default=0.0,
        ge=0.0,
        le=1.0,
        description="Share of calls to trace, of those that arrive without a sampling decision.",
    )
    access_log_ratio: float = Field(default=0.0, ge=0.0, le=1.0, description="Share of finished calls to log.")
    log_text: bool = Field(default=False, description="Also log the texts of calls; otherwise they are never logged.")
    log_format: Literal["text", "json"] = Field(default="text", description="Format of log lines.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="warning", description="Lowest level to log to standard error."
    )

    @property
    def is_explicit(self) -> bool:
        """Return whether models are loaded and unloaded by call only."""
        return self.model_control == "explicit"

    @property
    def pivot_languages(self) -> tuple[str, ...]:
        """Return the codes of the pivot languages, in the order of preference."""
        return () if NONE in self.pivot_language else self.pivot_language

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        for need in unmet_needs({name: getattr(self, name) for name in SETTINGS}):
            raise ValueError(f"{need.setting} needs {need.other} {need.value}".rstrip())
        return self


@dataclass(frozen=True, slots=True)
class Need:
    """A setting that requires another one to be set, to `value` if that is given; `otherwise` is the reason.

    It requires it where it is set itself, or where `applies` says so of the values of all settings.
    """

    setting: str
    other: str
    value: str = ""
    otherwise: str = ""
    applies: Callable[[Mapping[str, Any]], bool] | None = None

    def is_met(self, values: Mapping[str, Any]) -> bool:
        """Return whether these values, of all settings, meet the requirement."""
        other = values[self.other]
        needed = bool(values[self.setting]) if self.applies is None else self.applies(values)
        return not needed or (other == self.value if self.value else bool(other))


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach what listens at this address or name."""
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
        "http_host", "api_keys", otherwise="http_without_keys would let anyone who reaches it call", applies=_is_exposed
    ),
)


def unmet_needs(values: Mapping[str, Any]) -> Iterator[Need]:
    """Yield the requirements that these values, of all settings, don't meet."""
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
