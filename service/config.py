"""The server's settings, resolved once from flags and environment by the command line and passed down."""

from dataclasses import dataclass
from pathlib import Path

DEVICES = ("cpu", "cuda")
MODEL_CONTROLS = ("none", "explicit")
LOG_FORMATS = ("text", "json")
LOG_LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Everything that `dragoman serve` can be told.

    Of each model in a repository the `max_versions` highest versions are served. SIGHUP has the server look at
    `models`, and at the folder `glossaries`, again; with `reload_seconds` above 0 it also looks by itself, so often. A
    version that was replaced has `grace_seconds` to finish its calls.

    With a `model_control` of `explicit`, models are loaded and unloaded by call (KServe's RepositoryModelLoad and
    RepositoryModelUnload) and by nothing else: the server starts with those named in `load_model`, `*` being all of
    them, and looks at `models` again only when it is told to load one. SIGHUP and `reload_seconds` are then for
    glossaries.

    A port of 0 takes any free one. `num_threads` of 0 means one per CPU that the process may use.
    `max_slots` of 0 means as many as pay, which is measured for each model when it is loaded. `cache_mib` bounds the
    memory, in MiB, for finished translations that are kept for the next who asks for the same; 0 keeps none.
    `default_deadline_seconds` is what a call gets that sets no deadline. On a stop signal the server reports
    NOT_SERVING, goes on for `drain_delay_seconds` so that balancers notice, and gives accepted calls
    `grace_seconds` to finish. `max_connection_age_seconds` closes connections after that time, gently, so that
    clients find new servers; 0 keeps them.

    There are three listeners: gRPC, `metrics_host` for scrapers and probes, and `admin_host` for the status page and
    what it can do; an `admin_port` of -1 opens none. gRPC speaks TLS if `tls_certificate` and `tls_key` are given, and
    asks clients for certificates of `tls_client_ca` if that is given too; all three files may be replaced meanwhile.
    With `api_keys`, a file of hashed keys and their quotas, callers need one of them. Without `reflection` the server
    does not tell its API to those who ask.

    A call has at most `max_request_bytes`, `max_characters` in all of its texts, and `max_metadata_bytes` of metadata.

    Of finished calls `access_log_ratio` are logged, a share from 0 to 1; their texts never are, unless `log_text`.
    `triton_metrics` has the metrics that Triton's dashboards look for beside our own. Spans go to `otlp_endpoint`, if
    there is one, for a share `trace_ratio` of the calls that come without a decision.
    """

    models: Path = Path("models")
    glossaries: Path | None = None
    max_versions: int = 1
    reload_seconds: float = 0.0
    model_control: str = "none"
    load_model: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    port: int = 50051
    metrics_host: str = "127.0.0.1"
    metrics_port: int = 9464
    device: str = "cpu"
    num_threads: int = 0
    max_slots: int = 0
    max_waiting: int = 4096
    cache_mib: int = 0
    default_deadline_seconds: float = 60.0
    drain_delay_seconds: float = 0.0
    grace_seconds: float = 30.0
    max_connection_age_seconds: float = 0.0
    admin_host: str = "127.0.0.1"
    admin_port: int = 9465
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    api_keys: Path | None = None
    reflection: bool = True
    max_request_bytes: int = 4 * 2**20
    max_characters: int = 1_000_000
    max_metadata_bytes: int = 16 * 2**10
    triton_metrics: bool = False
    otlp_endpoint: str = ""
    trace_ratio: float = 0.0
    access_log_ratio: float = 0.0
    log_text: bool = False
    log_format: str = "text"
    log_level: str = "warning"
