"""The pod that the chart renders, played by podman: config file, limits and security as in production."""

import json
import re
import time
from pathlib import Path
from types import TracebackType

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


READY = 'import urllib.request; urllib.request.urlopen("http://127.0.0.1:9464/readyz", timeout=5)'


class PlayedPod(ServerContainer):
    """A Deployment of one replica, with what it refers to, as `podman kube play` makes of it."""

    def __init__(self, engine: ContainerEngine, objects: Path) -> None:
        self._engine = engine
        self.started = time.monotonic()
        played = engine.podman("kube", "play", objects)
        ((self._pod, self.name),) = re.findall(r"^Pod:\n(\w+)\nContainer:\n(\w+)", played, re.MULTILINE)

    def is_healthy(self) -> bool:
        """Return whether the server is ready, as the pod's probe asks: podman's pods have no HEALTHCHECK of images."""
        with self.client("-c", READY) as asking:
            return asking.wait(timeout=30) == 0

    def stop(self) -> int:
        """Stop the pod, whose containers would be started again if they just ended, and return the exit code."""
        self._engine.podman("pod", "stop", "--time", "40", self._pod)
        return int(self._inspect("{{.State.ExitCode}}"))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            print(self.logs())
            self.stop()  # what is left of it goes with the engine


@pytest.fixture
def objects(image: str, tmp_path: Path) -> Path:
    """Return a file with what podman knows of the chart's objects, and the keys that an operator adds."""
    repository, _, tag = image.rpartition(":")
    values = {"image": {"repository": repository, "tag": tag}, "replicas": 1, "http": {"enabled": True}, "cpu": 1}
    rendered = [each for each in chart_documents(values) if each["kind"] in ("ConfigMap", "Deployment")]
    (deployment,) = [each for each in rendered if each["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):  # podman runs curl in the image, at port 0
        del container[probe]
    keys = {"keys.toml": write_keys(tmp_path, alice=ALICE).read_text()}
    for volume in deployment["spec"]["template"]["spec"]["volumes"]:
        if "secret" in volume:  # podman 4.3 mounts what is in a Secret as it is encoded there
            volume["configMap"] = {"name": volume.pop("secret")["secretName"]}
    own = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dragoman-api-keys"}, "data": keys}
    path = tmp_path / "pod.yaml"
    path.write_text(yaml.safe_dump_all([own, *rendered]))
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
        assert pod.stop() == 0
