"""The screenshot of the status page in docs/status.md: the shipped models, real load, a real browser.

`python -m benchmarks.status_screenshot` writes docs/images/status.png; it needs Debian's chromium and chromium-driver.
"""

import contextlib
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from benchmarks.load_generator import Load
from benchmarks.servers import running, send, serve_command
from dragoman_client import Client, ClientError, Options
from tests.browser import Browser, browser
from tests.servers import eventually

_SHARES = (0.25, 0.65, 0.4, 1.0, 0.6)  # of the peak, one after the other
_MORE_SECONDS = 3.0  # of load, after the screenshot
_TEXT = "Save the file before you close the window."


@click.command()
@click.option("--output", type=click.Path(path_type=Path), default=Path("docs/images/status.png"), show_default=True)
@click.option("--seconds", default=300.0, show_default=True, help="How long the page watches the load.")
@click.option("--peak", default=60.0, show_default=True, help="Most calls per second.")
@click.option("--width", default=1360, show_default=True)
@click.option("--dark", is_flag=True)
def main(output: Path, seconds: float, peak: float, width: int, dark: bool) -> None:
    """Serve the shipped models, send them load, and draw the page that watches it."""
    with (
        running(serve_command("models", "--admin-port", "0")) as server,
        tempfile.TemporaryDirectory() as profile,
        browser(Path(profile), width, 1000) as window,
        ThreadPoolExecutor(1) as pool,
    ):
        if dark:
            scheme = [{"name": "prefers-color-scheme", "value": "dark"}]
            window.command("Emulation.setEmulatedMedia", features=scheme)
        window.open(f"{server.status_url}status")
        load = pool.submit(_send_load, server.address, seconds, peak)
        _translate(window)
        time.sleep(seconds)  # the load continues a little longer
        output.write_bytes(window.screenshot())
        load.result()
        for line in window.console():
            click.echo(line, err=True)


def _send_load(address: str, seconds: float, peak: float) -> None:
    for number, share in enumerate(_SHARES):
        _fail(address, number)
        send(Load(address, (seconds + _MORE_SECONDS) / len(_SHARES), rate=share * peak, seed=number))


def _fail(address: str, number: int) -> None:
    """Make one of three common mistakes in a call."""
    target, model, beam_size = (("fr", "", 1), ("de", "en-fr", 1), ("de", "", 32))[number % 3]
    with Client(address) as client, contextlib.suppress(ClientError):
        client.translate([_TEXT], "en", target, model=model, options=Options(beam_size=beam_size))


def _translate(window: Browser) -> None:
    eventually(lambda: window.run("return document.querySelector('#into').value") == "de")
    window.run("document.querySelector('#text').value = arguments[0]; document.querySelector('#go').click()", _TEXT)
    eventually(lambda: window.text("#translation") != "")


if __name__ == "__main__":
    main()
