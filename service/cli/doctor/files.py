"""Checks of the files that the settings name, with the server's own reading code, and the warnings that it logs."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from service.cli.doctor.finding import Finding, fail, ok, warn
from service.config.server_config import ServerConfig
from service.config.watched_files import FileProblem, warn_if_world_readable
from service.models.repository import FoundBundle

_RENEW = timedelta(days=14)


def certificate(config: ServerConfig, now: datetime | None = None) -> Iterator[Finding]:
    from service.faces.grpc.tls import tls_of

    with _logged() as warnings:
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
    yield from (warn("tls", each, "") for each in warnings)


def other_settings(config: ServerConfig) -> Iterator[Finding]:
    """Yield whether API keys and placeholders can be used, and whether there is what tracing needs."""
    from service.calls.keys import read_keys
    from service.server.optional_parts import (
        TracingUnavailable,
        WrongPlaceholder,
        placeholders_of,
        tracing_of,
    )

    def check_keys(config: ServerConfig) -> None:
        if config.api_keys:
            read_keys(config.api_keys)
            warn_if_world_readable(config.api_keys, "API keys")

    for what, value, check, problem in (
        ("api keys", config.api_keys, check_keys, FileProblem),
        ("placeholders", ", ".join(config.placeholder), placeholders_of, WrongPlaceholder),
        ("tracing", config.otlp_endpoint, tracing_of, TracingUnavailable),
    ):
        if not value:
            continue
        with _logged() as warnings:
            try:
                check(config)
            except problem as error:
                yield fail(what, str(error))
                continue
        yield ok(what, f"{value} can be used")
        yield from (warn(what, each, "") for each in warnings)


def glossaries(config: ServerConfig, found: Sequence[FoundBundle]) -> Iterator[Finding]:
    """Yield whether glossaries can be used, and those that no call can name, as the bundles don't have their pair."""
    from service.models.language_pairs import LanguagePairs
    from service.text.glossary import Glossaries, GlossaryError

    if config.glossaries is None:
        return
    with _logged() as warnings:
        try:
            read = Glossaries(config.glossaries).all()
        except GlossaryError as error:
            yield fail("glossaries", str(error))
            return
    yield ok("glossaries", f"{config.glossaries} can be used")
    yield from (warn("glossaries", each, "") for each in warnings)
    models = [LanguagePairs(bundle.manifest) for bundle in found]

    def is_translated(source: str, target: str) -> bool:
        return any(pairs.find(source, target) is not None for pairs in models)

    for each in read if models else ():
        source, target = each.codes
        pivots = config.pivot_languages
        if not is_translated(source, target) and not any(
            is_translated(source, pivot) and is_translated(pivot, target) for pivot in pivots
        ):
            yield warn(
                "glossaries",
                f"{each.name} is from {source} into {target}, which no model translates",
                "no call can use it; add a model, or correct the language codes in the file's name.",
            )


def granted_names(config: ServerConfig, models: Iterable[str]) -> Iterator[Finding]:
    """Yield each model and glossary that a key may use and that does not exist; `models` are those on disk."""
    from service.calls.keys import read_keys, unknown_names
    from service.text.glossary import Glossaries, GlossaryError

    if config.api_keys is None:
        return
    try:
        with _logged():
            keys, glossaries = read_keys(config.api_keys), Glossaries(config.glossaries).all()
    except (FileProblem, GlossaryError):
        return  # which `other_settings` tells
    for problem in unknown_names(keys, models, {each.name for each in glossaries}):
        yield warn("api keys", f"{config.api_keys}: {problem}", "correct the name; until then the key may use less.")


@contextmanager
def _logged() -> Iterator[list[str]]:
    """Collect the warnings and errors that the server's code logs in the block, in place of printing them."""
    found: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    logger, collector = logging.getLogger("service"), Collector(logging.WARNING)
    logger.addHandler(collector)
    try:
        yield found
    finally:
        logger.removeHandler(collector)
