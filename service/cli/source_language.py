"""The default source language."""

from dragoman_client import Client, Model
from service.cli.command_error import CommandError
from service.cli.exit_codes import ExitCode
from service.domain.errors import listed


def only_source(client: Client, target: str, model: str, version: str) -> str:
    """Return the only language that can be translated into `target`; empty if there are several: the server detects.

    Raises:
        CommandError: there is none, or `model` or its `version` is not served.
        ClientError: as for `Client.models`.
    """
    from service.text.languages import ServedLanguages  # takes 50 ms, which commands with --from need not pay

    candidates = _candidates(client, model, version)
    pairs = {pair for served in candidates for pair in served.pairs()}
    if not model:
        pairs |= {(source, into) for served in candidates for source, into, _ in served.pivoted_pairs}
    targets = {found.code for found in ServedLanguages(into for _, into in pairs).find(target)}
    sources = {source for source, into in pairs if into in targets}
    if sources:
        return sources.pop() if len(sources) == 1 else ""
    directions = listed(sorted(f"{source} to {into}" for source, into in pairs))
    raise CommandError(f"no model here translates into {target!r}; served: {directions}.", ExitCode.USAGE)


def _candidates(client: Client, model: str, version: str) -> list[Model]:
    """Return the served models that may answer a call with this model and version, which may be empty."""
    served: dict[str, dict[str, Model]] = {}
    for each in client.models():
        served.setdefault(each.name, {})[each.version] = each
    if model and model not in served:
        names = ", ".join(served)
        raise CommandError(f"model {model!r} is not served at {client.server}; served: {names}.", ExitCode.USAGE)
    if version and version not in served[model]:
        versions = ", ".join(filter(None, served[model])) or "none"
        raise CommandError(
            f"version {version!r} of model {model!r} is not served at {client.server}; served: {versions}.",
            ExitCode.USAGE,
        )
    if version:
        return [served[model][version]]
    return [next(iter(versions.values())) for name, versions in served.items() if model in ("", name)]  # the highest
