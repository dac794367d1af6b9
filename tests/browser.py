"""A headless Chromium, driven by plain WebDriver over HTTP; it connects to loopback only."""

import contextlib
import json
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.servers import TIMEOUT_SECONDS, eventually, free_port
from tests.tools import tool

_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


# Each scheme and each width once; `full` adds the other pairs.
IN_EACH_LOOK = pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", 390),
        ("dark", 1280),
        pytest.param("light", 1280, marks=pytest.mark.full),
        pytest.param("dark", 390, marks=pytest.mark.full),
    ],
)


class Browser:
    """One browser window."""

    def __init__(self, driver_url: str, chromium: str, profile: Path, width: int, height: int) -> None:
        flags = [*_FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"]
        capabilities = {
            "browserName": "chrome",
            "goog:chromeOptions": {"binary": chromium, "args": flags},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        self._url = driver_url
        session = self._post("/session", {"capabilities": {"alwaysMatch": capabilities}})
        self._url = f"{driver_url}/session/{session['sessionId']}"

    def open(self, url: str) -> None:
        self._post("/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        """Return the result of a script, which is the body of a function."""
        return self._post("/execute/sync", {"script": script, "args": arguments})

    def text(self, selector: str) -> str:
        return str(self.run("return document.querySelector(arguments[0]).textContent", selector))

    def texts(self, selector: str, property_name: str = "textContent") -> list[str]:
        """Return the texts of all elements that `selector` finds."""
        script = "return [...document.querySelectorAll(arguments[0])].map((each) => each[arguments[1]])"
        return list(self.run(script, selector, property_name))

    def shown(self, selector: str) -> bool:
        """Return whether an element is displayed, even where the page runs no scripts."""
        for domain in ("DOM", "CSS"):
            self.command(f"{domain}.enable")
        root = self.command("DOM.getDocument")["root"]["nodeId"]
        node = self.command("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        style = self.command("CSS.getComputedStyleForNode", nodeId=node)["computedStyle"]
        return {"name": "display", "value": "none"} not in style

    def command(self, name: str, **parameters: Any) -> Any:
        """Send a command of Chromium's DevTools."""
        return self._post("/goog/cdp/execute", {"cmd": name, "params": parameters})

    def console(self) -> list[str]:
        """Return the errors and warnings logged since the last call."""
        return [entry["message"] for entry in self._post("/se/log", {"type": "browser"})]

    def requested(self) -> set[str]:
        """Return the addresses requested since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self._post("/se/log", {"type": "performance"})]
        return {event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"}

    def close(self) -> None:
        self._send("", None, "DELETE")

    def _post(self, path: str, document: Any) -> Any:
        return self._send(path, document, "POST")

    def _send(self, path: str, document: Any, method: str) -> Any:
        body = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(
            f"{self._url}{path}", body, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
            return json.load(response)["value"]


@contextlib.contextmanager
def browser(profile: Path, width: int = 1280, height: int = 900) -> Iterator[Browser]:
    """Open a window until the block ends; `profile` is an empty folder of its own."""
    chromium, driver = tool("chromium", "chromium"), tool("chromedriver", "chromium-driver")
    port = free_port()
    process = subprocess.Popen([driver, f"--port={port}", "--log-level=SEVERE"], stdout=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        eventually(lambda: _is_up(url))
        window = Browser(url, chromium, profile, width, height)
        try:
            yield window
        finally:
            window.close()
    finally:
        process.terminate()
        process.wait(TIMEOUT_SECONDS)


@contextlib.contextmanager
def like(window: Browser, scheme: str, width: int) -> Iterator[None]:
    """Make the page think that it is on a phone, or in the dark."""
    metrics = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    window.command("Emulation.setDeviceMetricsOverride", **metrics)
    window.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    yield
    window.command("Emulation.clearDeviceMetricsOverride")
    window.command("Emulation.setEmulatedMedia", features=[])


def _is_up(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/status", timeout=TIMEOUT_SECONDS) as response:
            return bool(json.load(response)["value"]["ready"])
    except OSError:
        return False
