"""The status page of a server of several workers in a real browser, as an operator sees it."""

from pathlib import Path

import pytest

from dragoman_client import ClientError
from service.config.server_config import ServerConfig
from tests.browser import browser
from tests.fronts import front
from tests.servers import LoopThread, Serve, distinct_texts, eventually


def test_it_shows_each_worker_and_the_sums_of_all(loop_thread: LoopThread, tmp_path: Path, serve: Serve) -> None:
    config = ServerConfig(metrics_port=0, admin_port=0)
    with front(loop_thread, 2, config) as running, browser(tmp_path / "profile") as window:
        servers = [serve(), serve()]
        for number, server in enumerate(servers):
            running.appears(number, server)
        window.open(f"http://127.0.0.1:{running.admin_port}/status")
        eventually(lambda: window.text("#phase") == "serving")
        eventually(lambda: window.run("return document.querySelectorAll('#workers tr').length") == 2)
        slots = sum(int(server.metric("dragoman_slots_max", model="tiny")) for server in servers)
        assert window.text("#slots-max") == f"of {slots}"
        with servers[1].client() as client:
            client.translate(distinct_texts(1), "en", "de")
            with pytest.raises(ClientError):
                client.translate(["Hello"], "en", "de", model="nobody")
        eventually(lambda: "Translate, worker 1" in window.text("#errors"))
        eventually(lambda: "OK 1" in window.text("#codes"))
        window.run("document.querySelector('#reload').click()")
        eventually(lambda: window.text("#done") == "reload: unchanged")
        running.disappears(1)
        eventually(lambda: "no answer" in window.text("#workers"))
        assert window.text("#phase") == "serving"
        eventually(lambda: "OK 1" in window.text("#codes"))
        assert window.console() == []
