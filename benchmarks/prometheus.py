"""A real Prometheus, on a free port, that scrapes one server every second with the shipped configuration and rules."""

import contextlib
import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import yaml

DEPLOYED = Path("deploy/prometheus")
START_SECONDS = 30.0


class QueryError(Exception):
    """Prometheus rejected an expression; the message is its own."""


class Prometheus:
    """Queries a Prometheus through its HTTP API."""

    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return an expression's value now: a list of `metric` and `value`.

        Raises:
            QueryError: it can't be parsed or evaluated.
        """
        return self._get("query", query=expression)["result"]  # type: ignore[no-any-return]

    def values(self, label: str) -> list[str]:
        """Return all values of a label; for `__name__`, all names."""
        return self._get(f"label/{label}/values")  # type: ignore[no-any-return]

    def rules(self) -> list[dict[str, Any]]:
        """Return all rules, with their health and alerts."""
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def _get(self, path: str, **parameters: Any) -> Any:
        try:
            with urlopen(f"{self.url}/api/v1/{path}?{urlencode(parameters)}", timeout=30) as response:
                return json.load(response)["data"]
        except HTTPError as error:
            raise QueryError(json.load(error)["error"]) from error


@contextlib.contextmanager
def scraping(
    targets: str | Mapping[str, Mapping[str, str]],
    *,
    program: str = "prometheus",
    rules: Path = DEPLOYED / "rules",
    alertmanager: str = "",
) -> Iterator[Prometheus]:
    """Run a Prometheus for the duration of the block; `targets`, one or each with the labels that its series get, and
    `alertmanager` are addresses, host:port."""
    with tempfile.TemporaryDirectory() as folder:
        config = _config({targets: {}} if isinstance(targets, str) else targets, alertmanager)
        (Path(folder) / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
        shutil.copytree(rules, Path(folder) / "rules")
        _evaluate_each_second(Path(folder) / "rules")
        port = _free_port()
        with subprocess.Popen(_command(program, folder, port), stderr=subprocess.PIPE, text=True) as process:
            try:
                prometheus = Prometheus(f"http://127.0.0.1:{port}")
                _wait_until_ready(prometheus, process)
                yield prometheus
            finally:
                process.kill()
                process.communicate()


def _config(targets: Mapping[str, Mapping[str, str]], alertmanager: str) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load((DEPLOYED / "prometheus.yml").read_text(encoding="utf-8"))
    config["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    config["scrape_configs"][0]["static_configs"] = [
        {"targets": [target], "labels": dict(labels)} for target, labels in targets.items()
    ]
    if alertmanager:
        config["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]}
    return config


def _evaluate_each_second(rules: Path) -> None:
    for path in rules.glob("*.yml"):
        groups = yaml.safe_load(path.read_text(encoding="utf-8"))
        for group in groups["groups"]:
            group.pop("interval", None)
        path.write_text(yaml.safe_dump(groups), encoding="utf-8")


def _command(program: str, folder: str, port: int) -> Sequence[str]:
    return (
        program,
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=error",
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(prometheus: Prometheus, process: "subprocess.Popen[str]") -> None:
    end = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(URLError, ConnectionError), urlopen(f"{prometheus.url}/-/ready", timeout=5):
            return
        time.sleep(0.05)
    process.kill()
    raise RuntimeError(f"Prometheus did not become ready: {process.communicate()[1]}")
