"""`dragoman models`: the models that a server has loaded."""

import json
from collections.abc import Sequence

import click

from dragoman_client import Model
from service.cli.options import Connection, connection_options

_HEADINGS = ("MODEL", "VERSION", "LANGUAGES", "MAX TOKENS", "BEAM", "PRECISION", "KERNELS", "LICENCE")
_MAX_SHOWN = 6


@click.command()
@connection_options
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list for programs.")
def models(connection: Connection, as_json: bool) -> None:
    """List the models that a server has loaded."""
    with connection.client() as client:
        served = client.models()
    if as_json:
        click.echo(json.dumps([_document(model) for model in served], indent=2, ensure_ascii=False))
        return
    rows = [_HEADINGS, *(_row(model) for model in served)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _document(model: Model) -> dict[str, object]:
    pairs = [
        {"source_language_code": source, "target_language_code": target} for source, target in model.language_pairs
    ]
    return {
        "name": model.name,
        "version": model.version,
        "language_pairs": pairs,
        "max_source_tokens": model.max_source_tokens,
        "max_output_tokens": model.max_output_tokens,
        "beam_size": model.default_options.beam_size,
        "precision": model.precision,
        "any_to_any_language_codes": model.any_to_any_language_codes,
        "pivoted_pairs": [
            {"source_language_code": source, "target_language_code": target, "pivot_language_code": pivot}
            for source, target, pivot in model.pivoted_pairs
        ],
        "kernels": model.kernels,
        "licence": model.licence,
    }


def _row(model: Model) -> tuple[str, ...]:
    return (
        model.name,
        model.version or "-",
        _languages(model),
        f"{model.max_source_tokens}/{model.max_output_tokens}",
        str(model.default_options.beam_size),
        model.precision,
        model.kernels or "-",
        model.licence or "-",
    )


def _languages(model: Model) -> str:
    directions = [_shortened([f"{source}-{target}" for source, target in model.language_pairs])]
    if model.any_to_any_language_codes:
        directions.append(f"among {_shortened(model.any_to_any_language_codes)}")
    if model.pivoted_pairs:
        directions.append(_shortened([f"{source}-{pivot}-{target}" for source, target, pivot in model.pivoted_pairs]))
    return ", ".join(filter(None, directions))


def _shortened(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_SHOWN} more" if len(names) > _MAX_SHOWN else ""
    return ", ".join(names[:_MAX_SHOWN]) + more
