"""The screenshots of the translation page: the shipped models and a real browser.

`python -m benchmarks.page_screenshots` writes docs/images/page-*.png; it needs Debian's chromium and chromium-driver.
"""

import tempfile
from itertools import product
from pathlib import Path

import click

from benchmarks.servers import running, serve_command
from tests.browser import Browser, browser
from tests.servers import eventually

_HEIGHTS = {390: 680, 1280: 540}  # by width: of a phone, and of a window
_SCHEMES = ("light", "dark")
_TEXT = "Where is the train station? My brother lives in a small house near the sea."
_WORD = "Haus"
_PLACE = """
const word = [...document.querySelectorAll("#result .word")].find((each) => each.textContent.includes(arguments[0]));
const box = word.getBoundingClientRect();
return [box.x + box.width / 2, box.y + box.height / 2];
"""


@click.command()
@click.option("--output", type=click.Path(path_type=Path), default=Path("docs/images"), show_default=True)
@click.option("--operators", is_flag=True, help="Draw the page of the operators' port.")
def main(output: Path, operators: bool) -> None:
    """Serve the shipped models, translate a text, and draw the page in each width and colour scheme."""
    with (
        running(serve_command("models", "--http-port", "0", "--admin-port", "0")) as server,
        tempfile.TemporaryDirectory() as profile,
        browser(Path(profile)) as window,
    ):
        for (width, height), scheme in product(_HEIGHTS.items(), _SCHEMES):
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
            window.command("Emulation.setDeviceMetricsOverride", **metrics)
            window.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            window.open(server.status_url if operators else f"{server.http_url}/")
            _translate(window)
            (output / f"page-{width}-{scheme}.png").write_bytes(window.screenshot())
        for line in window.console():
            click.echo(line, err=True)


def _translate(window: Browser) -> None:
    eventually(lambda: window.run("return document.querySelector('#into').value") == "de")
    window.run("document.querySelector('#text').focus()")
    window.command("Input.insertText", text=_TEXT)
    eventually(lambda: window.run("return document.querySelector('#result').dataset.state") == "done")
    x, y = window.run(_PLACE, _WORD)
    window.command("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    eventually(lambda: bool(window.run("return document.querySelector('#mirror .marked') !== null")))


if __name__ == "__main__":
    main()
