"""Checks of the bundles, with the server's own loading code."""

from collections.abc import Iterator

from service.bundle.checksums import check_intact
from service.bundle.errors import BundleError
from service.cli.doctor.finding import Finding, fail, ok, warn
from service.config.server_config import ServerConfig
from service.models.repository import FoundBundle, read_models, shared_pair


def found_bundles(config: ServerConfig) -> tuple[list[FoundBundle], list[Finding]]:
    try:
        models = read_models(config.models, config.max_versions)
    except BundleError as error:
        return [], [fail("bundle", str(error))]
    faults = [fail("bundle", fault) for model in models for fault in model.faults]
    return [bundle for model in models for bundle in model.bundles], faults


def bundles(config: ServerConfig, found: list[FoundBundle], *, loads: bool) -> Iterator[Finding]:
    """Yield whether each is intact, by its checksums, and fits the device; with `loads`, whether it works, too."""
    from service.engine.config import EngineConfig
    from service.engine.runtime.session import DeviceUnavailable, SessionConfig, check_precision
    from service.models.trial import try_out

    engine = EngineConfig(max_slots=config.max_slots or None, max_waiting=config.max_waiting)
    session = SessionConfig(device=config.device, intra_op_threads=config.num_threads)
    for bundle in found:
        try:
            check_precision(bundle.manifest.precision, config.device, str(bundle.directory))
            check_intact(bundle.directory, bundle.manifest)
            if loads:
                try_out(bundle, engine, session)
        except (BundleError, DeviceUnavailable) as error:
            yield fail("bundle", str(error))
            continue
        manifest = bundle.manifest
        value = f"{bundle.directory} is {manifest.name}, {manifest.precision}, {manifest.licence or 'licence unknown'}"
        yield ok("bundle", f"{value}; {'it translates its test sentences' if loads else 'its files are intact'}")


def pairs(found: list[FoundBundle]) -> Iterator[Finding]:
    """Yield whether a language pair is shared by several models: then calls must name one."""
    if line := shared_pair(bundle.manifest for bundle in found):
        yield warn("languages", *line)
