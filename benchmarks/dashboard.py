"""Pictures of the dashboard: a server under varying load, scraped by Prometheus, and the panels drawn from it.

`python -m benchmarks.dashboard` takes four minutes, needs the program `prometheus`, and writes the pictures of
docs/dashboards.md.
"""

import concurrent.futures
import time
from pathlib import Path

import click

from benchmarks import panels
from benchmarks.dashboard_picture import draw
from benchmarks.load_generator import Load
from benchmarks.prometheus import scraping
from benchmarks.servers import running, send, serve_command

IMAGES = Path("docs/images")
WINDOW = "15s"
# Share of the whole time, arrivals per second: a quiet start, a busy hour, an overload, and quiet again.
LOAD = ((0.2, 10.0), (0.25, 40.0), (0.1, 90.0), (0.25, 30.0), (0.2, 15.0))
FIRST_PICTURE = ("Now", "Traffic", "Latency", "Saturation")


@click.command()
@click.option("--seconds", default=240.0, show_default=True, help="How long the load lasts.")
@click.option("--models", default="models", show_default=True)
@click.option("--output", default=IMAGES, type=click.Path(path_type=Path), show_default=True)
def main(seconds: float, models: str, output: Path) -> None:
    """Draw the dashboard from a run under load."""
    command = serve_command(models, "--cache-mib", "16", "--max-waiting", "100", "--reload-seconds", "20")
    with running(command) as server, scraping(server.metrics_url.split("/")[2]) as prometheus:
        started = time.time()
        for share, rate in LOAD:
            in_time = Load(server.address, share * seconds, rate=rate * 0.9, timeout_seconds=10.0)
            hasty = Load(server.address, share * seconds, rate=rate * 0.1, timeout_seconds=0.05, seed=2)
            with concurrent.futures.ThreadPoolExecutor() as pool:
                list(pool.map(send, (in_time, hasty)))
        span = started, time.time()
        for name, is_first in (("dashboard.png", True), ("dashboard-engine.png", False)):
            shown = [(row, panel) for row, panel in panels.by_row() if (row in FIRST_PICTURE) is is_first]
            draw(
                prometheus,
                shown,
                span,
                WINDOW,
                output / name,
                "One server under varying load, on two CPUs; times in minutes and seconds",
            )
            click.echo(output / name)


if __name__ == "__main__":
    main()
