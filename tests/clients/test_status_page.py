"""The status page in a real browser, as an operator sees it."""

import json
import re
from collections.abc import Iterator

import pytest

from dragoman_client import Client, ClientError
from tests.axe import findings
from tests.browser import Browser, browser
from tests.servers import ServerProcess, distinct_texts, eventually, http_get

# A script that counts the pixels of a chart's canvas which have one of the page's colours.
INKED = """
const [number, name] = arguments;
const canvas = document.querySelectorAll("#charts canvas")[number];
const copy = (width, height) =>
  Object.assign(document.createElement("canvas"), { width, height }).getContext("2d", { willReadFrequently: true });
const wanted = copy(1, 1);
wanted.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`);
wanted.fillRect(0, 0, 1, 1);
const [red, green, blue] = wanted.getImageData(0, 0, 1, 1).data;
const drawn = copy(canvas.width, canvas.height);
drawn.drawImage(canvas, 0, 0);
const { data } = drawn.getImageData(0, 0, canvas.width, canvas.height);
let inked = 0;
for (let i = 0; i < data.length; i += 4)
  if (data[i + 3] > 200 && Math.abs(data[i] - red) + Math.abs(data[i + 1] - green) + Math.abs(data[i + 2] - blue) < 30)
    inked++;
return inked;
"""


@pytest.fixture(scope="module")
def window(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as window:
        window.open(f"http://127.0.0.1:{server.admin_port}/status")
        eventually(lambda: window.text("#phase") == "serving")
        yield window


def calls_by_status(window: Browser) -> dict[str, int]:
    return {code: int(count) for code, count in re.findall(r"([A-Z_]+) (\d+)", window.text("#codes"))}


def test_it_shows_what_is_served(server: ServerProcess, window: Browser) -> None:
    assert "tiny" in window.text("#models")
    assert "en → de" in window.text("#models")
    status = json.loads(http_get(f"http://127.0.0.1:{server.admin_port}/status.json")[2])
    assert window.text("#version") == status["version"]
    assert window.text("#slots-max") == f"of {status['slots_max']:.0f}"


def test_charts_and_numbers_follow_the_traffic(server: ServerProcess, window: Browser) -> None:
    before = calls_by_status(window).get("OK", 0)
    with Client(server.address) as client:
        for text in distinct_texts(20):
            client.translate([text], "en", "de")
        with pytest.raises(ClientError):
            client.translate(["Hello"], "en", "de", model="nobody")
    eventually(lambda: calls_by_status(window).get("OK", 0) - before >= 20)
    eventually(lambda: window.text("#latency") != "–")
    eventually(lambda: "NOT_FOUND" in window.text("#errors"))
    assert "nobody" not in window.text("#errors")
    lines = ["one", "one", "one", "one", "two", "one"]  # there are more slots than are in use
    eventually(lambda: all(window.run(INKED, chart, line) > 3 for chart, line in enumerate(lines)))


def test_a_translation_typed_in_comes_back(server: ServerProcess, window: Browser) -> None:
    window.run("document.querySelector('#text').value = 'Help me find the train station.'")
    window.run("document.querySelector('#go').click()")
    eventually(lambda: "score" in window.text("#outcome"))
    with Client(server.address) as client:
        (expected,) = client.translate(["Help me find the train station."], "en", "de")
    assert window.text("#translation") == expected.text
    assert re.search(r"tiny 1 · [\d.]+ ms · score −\d", window.text("#outcome"))


def test_what_the_server_refuses_is_shown(window: Browser) -> None:
    window.run("document.querySelector('#into').append(new Option('French', 'fr'))")
    window.run("document.querySelector('#into').value = 'fr'; document.querySelector('#go').click()")
    eventually(lambda: "NOT_FOUND" in window.text("#outcome"))


def test_the_disk_is_looked_at_again(window: Browser) -> None:
    window.run("document.querySelector('#reload').click()")
    eventually(lambda: window.text("#done") == "reload: unchanged")


def test_it_fits_a_phone_and_the_dark(window: Browser) -> None:
    metrics = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    window.command("Emulation.setDeviceMetricsOverride", **metrics)
    assert window.run("return document.documentElement.scrollWidth") <= 360
    light = window.run("return getComputedStyle(document.body).backgroundColor")
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    window.command("Emulation.setEmulatedMedia", features=dark)
    eventually(lambda: window.run("return getComputedStyle(document.body).backgroundColor") != light)
    eventually(lambda: window.run(INKED, 0, "one") > 3)
    window.command("Emulation.clearDeviceMetricsOverride")


def test_it_is_made_for_everybody(window: Browser) -> None:
    nameless = window.run(
        "return [...document.querySelectorAll('button, select, textarea, meter')]"
        ".filter((each) => !(each.labels?.length || each.ariaLabel || each.textContent.trim())).map((each) => each.id)"
    )
    assert nameless == []
    assert findings(window) == []
    assert window.run("return document.documentElement.lang") == "en"
    assert window.run("return document.querySelectorAll('main, h1, header').length") == 3


# Last, because they check everything that happened before.


def test_it_asks_nobody_else_and_has_nothing_to_complain(server: ServerProcess, window: Browser) -> None:
    own = f"http://127.0.0.1:{server.admin_port}/"
    strangers = {url for url in window.requested() if not url.startswith((own, "data:", "chrome:"))}
    assert strangers == set()
    complaints = [line for line in window.console() if "404 (Not Found)" not in line]  # the pair that does not exist
    assert complaints == []


def test_a_planted_request_to_elsewhere_is_stopped_and_seen(server: ServerProcess, window: Browser) -> None:
    window.run(f"fetch('http://127.0.0.1:{server.metrics_port}/metrics').catch(() => {{}})")
    eventually(lambda: any("Content Security Policy" in line for line in window.console()))
