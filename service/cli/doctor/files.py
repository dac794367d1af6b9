"""Checks of the files that the settings name, by the code that the server reads them with."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from service.cli.doctor.finding import Finding, fail, ok, warn
from service.config.server_config import ServerConfig
from service.config.watched_files import FileProblem

_RENEW = timedelta(days=14)


def certificate(config: ServerConfig, now: datetime | None = None) -> Iterator[Finding]:
    """Yield whether TLS's files belong together and are valid, and for how long."""
    from service.faces.grpc.tls import tls_of

    try:
        tls = tls_of(config)
    except FileProblem as problem:
        yield fail("tls", str(problem))
        return
    if tls is None:
        return
    ends = datetime.fromtimestamp(tls.not_after_seconds, UTC)
    value = f"{config.tls_certificate} is valid until {ends:%Y-%m-%d}"
    if ends - (now or datetime.now(UTC)) < _RENEW:
        yield warn("tls", value, "renew it; a server takes the new files without a restart.")
    else:
        yield ok("tls", value)
    assert config.tls_key is not None
    yield from _secret(config.tls_key, "tls key")


def api_keys(config: ServerConfig) -> Iterator[Finding]:
    """Yield whether the file of API keys can be used."""
    from service.calls.keys import read_keys

    if config.api_keys is None:
        return
    try:
        read_keys(config.api_keys)
    except FileProblem as problem:
        yield fail("api keys", str(problem))
        return
    yield ok("api keys", f"{config.api_keys} can be used")


def other_settings(config: ServerConfig) -> Iterator[Finding]:
    """Yield whether glossaries, placeholders and tracing can be used, where they are set."""
    from service.server.optional_parts import (
        TracingUnavailable,
        WrongPlaceholder,
        glossaries_of,
        placeholders_of,
        tracing_of,
    )
    from service.text.glossary import GlossaryError

    for what, value, check, problem in (
        ("glossaries", config.glossaries, glossaries_of, GlossaryError),
        ("placeholders", config.placeholder, placeholders_of, WrongPlaceholder),
        ("tracing", config.otlp_endpoint, tracing_of, TracingUnavailable),
    ):
        if not value:
            continue
        try:
            check(config)
        except problem as error:
            yield fail(what, str(error))
        else:
            yield ok(what, f"{value} can be used")


def _secret(path: Path, what: str) -> Iterator[Finding]:
    if path.stat().st_mode & 0o004:
        yield warn(what, f"{path} can be read by every user of this machine", f"chmod o-r {path}")
