"""The compose project: everything it mounts exists, addresses match, and no container has more rights than needed.

Machines that run these tests have no container engine, so the project is read, not run.
"""

import json
import re
from typing import Any

import pytest

from service.config.server_config import ServerConfig
from tests.deploy.deployed import DEPLOY, read

COMPOSE = read(DEPLOY / "compose" / "compose.yaml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DRAGOMAN, PROMETHEUS, GRAFANA = SERVICES["dragoman"], SERVICES["prometheus"], SERVICES["grafana"]
DEFAULTS = ServerConfig()


def mounts(service: dict[str, Any]) -> dict[str, str]:
    """Return the mount points inside a container, and what is mounted there."""
    return {inside: outside for outside, inside, *_ in (each.split(":") for each in service.get("volumes", []))}


def ports_inside(service: dict[str, Any]) -> set[int]:
    return {int(port.rpartition(":")[2]) for port in service["ports"]}


@pytest.mark.parametrize("name", SERVICES)
def test_nobody_has_more_rights_than_needed(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["mem_limit"]
    assert service["healthcheck"]["test"][0] == "CMD"
    assert not service.keys() & {"privileged", "cap_add", "devices", "pid", "network_mode", "ipc"}
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert re.fullmatch(r"[\w./-]+:(?!latest)[\w.-]+", service["image"])


@pytest.mark.parametrize("name", SERVICES)
def test_what_is_mounted_is_there_and_read_only(name: str) -> None:
    for volume in SERVICES[name].get("volumes", []):
        outside, _, *mode = volume.split(":")
        if outside.startswith("."):
            assert (DEPLOY / "compose" / outside).resolve().exists(), volume
            assert mode == ["ro"], volume
        else:
            assert outside in COMPOSE["volumes"], volume


def test_the_server_listens_where_it_is_looked_for() -> None:
    assert ports_inside(DRAGOMAN) == {DEFAULTS.port, DEFAULTS.metrics_port}
    assert f":{DEFAULTS.metrics_port}/readyz" in DRAGOMAN["healthcheck"]["test"][-1]
    scraped = read(DEPLOY / "prometheus" / "prometheus.yml")["scrape_configs"][0]
    assert scraped["static_configs"] == [{"targets": [f"dragoman:{DEFAULTS.metrics_port}"]}]
    assert DRAGOMAN["user"] == "10001:10001"


def test_the_server_gets_settings_that_it_knows_and_time_to_stop() -> None:
    assert DRAGOMAN["pull_policy"] == "never"  # an image that was not built is not looked for elsewhere
    environment = DRAGOMAN["environment"]
    for name in environment:
        assert hasattr(DEFAULTS, name.removeprefix("DRAGOMAN_SERVE_").lower()), name
    assert all(isinstance(value, str) for value in environment.values())
    needed = sum(float(environment[f"DRAGOMAN_SERVE_{name}_SECONDS"]) for name in ("DRAIN_DELAY", "GRACE"))
    assert float(DRAGOMAN["stop_grace_period"].removesuffix("s")) >= needed + 5


def test_prometheus_finds_its_rules() -> None:
    places = mounts(PROMETHEUS)
    (config,) = [place for place in places if f"--config.file={place}" in PROMETHEUS["command"]]
    (pattern,) = read(DEPLOY / "prometheus" / "prometheus.yml")["rule_files"]
    assert f"{config.rpartition('/')[0]}/{pattern.partition('/')[0]}" in places


def test_grafana_finds_prometheus_and_the_dashboard() -> None:
    provisioning = DEPLOY / "grafana" / "provisioning"
    assert mounts(GRAFANA)["/etc/grafana/provisioning"] == "../grafana/provisioning"
    (source,) = read(provisioning / "datasources" / "prometheus.yml")["datasources"]
    host, _, port = source["url"].removeprefix("http://").partition(":")
    assert host in SERVICES
    assert int(port) in ports_inside(SERVICES[host])
    (provider,) = read(provisioning / "dashboards" / "dragoman.yml")["providers"]
    folder = provider["options"]["path"]
    assert mounts(GRAFANA)[folder] == "../grafana/dashboards"
    home = GRAFANA["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    dashboard = DEPLOY / "grafana" / "dashboards" / home.removeprefix(f"{folder}/")
    assert json.loads(dashboard.read_text(encoding="utf-8"))["uid"] == "dragoman"
