"""`dragoman doctor`: whether a server with these settings will work here, and what to do if not."""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

import service
from service.cli.errors import ExitCode
from service.cli.settings import SettingsCommand

if TYPE_CHECKING:
    from service.cli.doctor.finding import Finding
    from service.config.server_config import ServerConfig
    from service.config.sources import Settings


@click.command(cls=SettingsCommand, short_help="Check whether a server would work here.")
@click.option("--load", "loads", is_flag=True, help="Also load each bundle, and translate its test sentences.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list for programs.")
def doctor(settings: "Settings", loads: bool, as_json: bool) -> None:
    """Check whether 'dragoman serve' with the same flags, environment and file will work on this machine.

    Each line is ok, warn or fail, with what was found and what to do. Nothing is served, changed or sent. The exit code
    is 1 if anything fails. Whether a checkpoint can be converted is for 'python -m export doctor'.
    """
    from service.cli.doctor.finding import Status

    findings = []
    for finding in _findings(settings.config, loads=loads):
        findings.append(finding)
        if not as_json:
            click.echo(finding.line)  # at once: some take long
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2, ensure_ascii=False))
    if any(finding.status is Status.FAIL for finding in findings):
        sys.exit(ExitCode.UNFIT)


def _findings(config: "ServerConfig", *, loads: bool) -> "Iterator[Finding]":
    from service.cli.doctor import bundles, files, machine
    from service.cli.doctor.finding import ok

    python = ".".join(map(str, sys.version_info[:3]))
    yield ok("dragoman", f"{service.__version__}, Python {python}")
    found, faults = bundles.found_bundles(config)
    sizes = [bundle.num_bytes for bundle in found]
    yield from machine.cpus(config)
    yield from machine.load()
    yield from machine.kernels()
    yield from machine.memory(sizes, config)
    yield from machine.huge_pages(sizes)
    yield from machine.open_files(config)
    yield from machine.temporary_files(config)
    yield from machine.clock()
    yield from machine.texts()
    yield from machine.onnxruntime(config)
    yield from machine.gpu(config)
    yield from machine.ports(config)
    yield from files.certificate(config)
    yield from files.other_settings(config)
    yield from files.glossaries(config, found)
    yield from files.granted_names(config, {bundle.name for bundle in found})
    yield from faults
    yield from bundles.bundles(config, found, loads=loads)
    yield from bundles.pairs(found)
