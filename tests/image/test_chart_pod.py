"""The pod that the chart renders, played by podman: config file, secret, limits and security as in production."""

import json
import time
from base64 import b64encode
from pathlib import Path

import pytest
import yaml

from tests.deploy.helm import chart_documents
from tests.image.conftest import report
from tests.image.engine import ContainerEngine
from tests.image.server import ServerContainer
from tests.key_files import ALICE, write_keys
from tests.tools import tool

pytestmark = [pytest.mark.image, pytest.mark.timeout(900)]
CALLS = f"""
import json, urllib.request
from dragoman_client import Client
with Client("127.0.0.1:50051", api_key={ALICE!r}) as client:
    over_grpc = client.translate(["Where is the train station?"], "en", "de")[0].text
body = json.dumps({{"texts": ["Where is the train station?"], "target_language_code": "de"}}).encode()
headers = {{"Authorization": "Bearer {ALICE}", "Content-Type": "application/json"}}
request = urllib.request.Request("http://127.0.0.1:8080/v1/translate", body, headers)
over_http = json.load(urllib.request.urlopen(request, timeout=30))["translations"][0]["text"]
print(json.dumps([over_grpc, over_http]))
"""


class PlayedPod(ServerContainer):
    """A Deployment of one replica, with what it refers to, as `podman kube play` makes of it."""

    def __init__(self, engine: ContainerEngine, objects: Path) -> None:
        self._engine, self._objects = engine, objects
        self.started = time.monotonic()
        engine.podman("kube", "play", objects)
        self.name = "dragoman-pod-dragoman"

    def __exit__(self, *_: object) -> None:
        self._engine.podman("kube", "down", self._objects, timeout_seconds=120)


@pytest.fixture
def objects(image: str, tmp_path: Path) -> Path:
    """Return a file with what podman knows of the chart's objects, and the keys that an operator adds."""
    repository, _, tag = image.rpartition(":")
    values = {"image": {"repository": repository, "tag": tag}, "replicas": 1, "http": {"enabled": True}, "cpu": 1}
    rendered = [each for each in chart_documents(values) if each["kind"] in ("ConfigMap", "Deployment")]
    (deployment,) = [each for each in rendered if each["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    for volume in deployment["spec"]["template"]["spec"]["volumes"]:
        if "secret" in volume:
            volume["secret"]["optional"] = False  # the default; podman 4.3 crashes where nobody says so
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):  # podman runs curl in the image, at port 0
        del container[probe]
    keys = write_keys(tmp_path, alice=ALICE).read_bytes()
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "dragoman-api-keys"},
        "data": {"keys.toml": b64encode(keys).decode()},
    }
    path = tmp_path / "pod.yaml"
    path.write_text(yaml.safe_dump_all([secret, *rendered]))
    return path


def test_the_rendered_pod_answers_over_grpc_and_http(engine: ContainerEngine, objects: Path) -> None:
    tool("catatonit", "catatonit")
    with PlayedPod(engine, objects) as pod:
        report(f"the chart's pod is healthy after {pod.wait_until_healthy():.1f} s")
        assert json.loads(pod.ask("-c", CALLS)) == ["Wo ist der Bahnhof?"] * 2
        assert pod.public_ports() == {50051, 8080, 9464}
        inspected = json.loads(engine.podman("inspect", pod.name))[0]
        assert inspected["HostConfig"]["ReadonlyRootfs"]
        assert inspected["EffectiveCaps"] in (None, [])
        assert inspected["HostConfig"]["Memory"] == 2**30
        pod.signal("TERM")
        assert pod.wait() == 0
