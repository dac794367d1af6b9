"""`make soak`: a real server under an hour of mixed traffic; it must stay stable, and every answer must be right."""

import json
import math
import sys
import tempfile
from pathlib import Path

import click

from tests.mixed_calls import calls_of_each_kind
from tests.servers import REPOSITORY
from tests.soak.answers import save
from tests.soak.picture import draw
from tests.soak.planted_server import PLANTS
from tests.soak.reloads import bundles_of
from tests.soak.soak import Soak, answered_alone, model_of

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command()
@click.option("--minutes", default=60.0, show_default=True, help="How long to send traffic.")
@click.option("--models", default=Path("models"), show_default=True, type=_FOLDER)
@click.option(
    "--second-models",
    default=Path("build/float32"),
    show_default=True,
    type=_FOLDER,
    help="The same models with other weights: they come and go as version 2.",
)
@click.option("--calls-per-kind", default=6, show_default=True, help="Distinct calls of each kind, for each model.")
@click.option(
    "--answers",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Take the answers that each call gets alone from this file; write it if it does not exist.",
)
@click.option("--most-rate", default=math.inf, help="Calls per second, even if half of what is possible is more.")
@click.option("--plant", type=click.Choice(sorted(PLANTS)), help="Serve with this fault, which must be found.")
@click.option(
    "--output",
    default=REPOSITORY / "build/soak/soak.json",
    show_default=True,
    type=click.Path(path_type=Path),
    help="What was measured; picture and server's log go beside it.",
)
def main(
    minutes: float,
    models: Path,
    second_models: Path,
    calls_per_kind: int,
    answers: Path | None,
    most_rate: float,
    plant: str | None,
    output: Path,
) -> None:
    """Soak a server, write the measurements, and exit with 1 if anything is wrong."""
    first = bundles_of(models)
    second = [each for each in bundles_of(second_models) if (models / each.parent.name / "1").exists()]
    if len(first) != len(second) or not first:
        raise click.ClickException(
            f"{models} has {len(first)} models with a version 1, and {second_models} {len(second)} of them; "
            "each must be in both. `make soak` exports what is missing."
        )
    output.parent.mkdir(parents=True, exist_ok=True)
    served = [model_of(bundle) for bundle in first]
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        answers = answers or Path(folder) / "answers.json"
        if not answers.exists():
            calls = calls_of_each_kind(calls_per_kind, served)
            click.echo(f"{len(calls)} distinct calls are answered alone, by either version of their models ...")
            save(answers, served, calls_per_kind, answered_alone(calls, (first, second), Path(folder)))
        soak = Soak(Path(folder), answers, (first, second), minutes * 60.0, plant or "", output.parent, most_rate)
        outcome = soak.run()
    numbers = outcome.numbers() | {"minutes": minutes}
    series = outcome.picture_series()
    measured = {"calls": outcome.num_calls, "numbers": numbers, "findings": outcome.findings, "series": series}
    output.write_text(json.dumps(measured) + "\n", encoding="utf-8")
    draw(series, output.with_suffix(".png"))
    click.echo(" ".join(f"{name}={value:.6g}" for name, value in numbers.items()))
    for finding in outcome.findings:
        click.echo(f"FOUND: {finding}")
    click.echo(f"Wrote {output}.")
    sys.exit(1 if outcome.findings else 0)


if __name__ == "__main__":
    main()
