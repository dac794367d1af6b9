"""SIGTERM, SIGINT and SIGKILL in every phase: when and how the process ends, and what happens to its calls and port."""

import json
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest
from hyperframe.frame import DataFrame, GoAwayFrame, HeadersFrame, PingFrame, SettingsFrame

from benchmarks import http2_frames as http2
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.process.lifecycle import LAST_SECONDS
from tests.faults.conftest import Start
from tests.faults.faulty_server import FAULT_FILE
from tests.faults.raw_connection import METHOD, RawConnection
from tests.grpc_calls import request_of, stub_of
from tests.http_caller import Reply, call, events
from tests.http_post import JSON, form_of
from tests.patience import patient
from tests.servers import REPOSITORY, ServerProcess, distinct_texts, environment, eventually, rpc_error, samples

STOPS = (signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.full))  # one handler serves both
EVERY = (*STOPS, pytest.param(signal.SIGKILL, marks=pytest.mark.full))
FAULTY = "tests.faults.faulty_server"
STOP_SECONDS = patient(10.0)  # a stop without calls; half a second on an idle machine, 2 s more with silent peers
NUM_TEXTS = 30  # of each call that a stop finds
CODES: dict[str, Any] = {"source_language_code": "en", "target_language_code": "de"}


def phase(process: ServerProcess) -> str:
    """Return the phase of the server."""
    try:
        return process.get("/readyz")[2].strip()
    except OSError:
        return "not listening"


def end(process: ServerProcess, number: signal.Signals, lines: int = 0, limit_seconds: float = STOP_SECONDS) -> float:
    """Send the signal, check that the process ends as documented and leaves nothing; return the seconds it took."""
    children = psutil.Process(process.process.pid).children(recursive=True)
    began = time.monotonic()
    process.signal(number)
    code, out, err = process.wait(limit_seconds)
    seconds = time.monotonic() - began
    assert (code, out) == (-number if number == signal.SIGKILL else 0, "")
    assert len(err.splitlines()) == lines, err
    is_left_clean(process, children)
    return seconds


def is_left_clean(process: ServerProcess, children: list[psutil.Process]) -> None:
    """Check that there are no children, and that a new server could have the ports at once."""
    eventually(lambda: not any(child.is_running() for child in children))
    for port in (process.port, process.metrics_port, process.admin_port):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do
            probe.bind(("127.0.0.1", port))


@pytest.fixture
def fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that selects the fault of `FAULTY`."""
    path = tmp_path / "fault"
    monkeypatch.setenv(FAULT_FILE, str(path))
    return path


def is_met(fault: Path) -> bool:
    return fault.with_suffix(".met").exists()


@pytest.mark.parametrize("number", EVERY)
def test_while_loading(start: Start, fault: Path, number: signal.Signals) -> None:
    """In a thread that cannot be interrupted: its first run of the model never returns."""
    fault.write_text("hang")
    process = start(ready=False, program=FAULTY)
    eventually(lambda: is_met(fault) and phase(process) == "loading")


@pytest.mark.parametrize("number", STOPS)
@pytest.mark.parametrize("line", ["loading", pytest.param("the server is serving", marks=pytest.mark.full)])
def test_at_a_line_of_the_log(start: Start, line: str, number: signal.Signals) -> None:
    """Whatever the server does right after it: sessions, self-test and warm-up follow "loading"."""
    process = start("--log-level", "info", ready=False)
    assert process.process.stderr is not None
    for each in process.process.stderr:
        if line in each:
            break
    process.signal(number)
    code, _, _ = process.wait(STOP_SECONDS)
    assert code == 0
    is_left_clean(process, [])


@pytest.mark.parametrize("number", EVERY)
def test_idle_with_connections(start: Start, number: signal.Signals) -> None:
    """One connection is silent, one has sent nothing, one watches, and one has begun a call that it never sends.

    None of them hears that the server stops.
    """
    process = start()
    with ExitStack() as open_ones:
        silent, watch, begun = (open_ones.enter_context(RawConnection(process.port)) for _ in range(3))
        silent.greeted()
        watch.greeted()
        watch.send(http2.call(1, "/grpc.health.v1.Health/Watch") + http2.message(1, b""))
        watch.until(HeadersFrame)
        begun.greeted()
        begun.send(http2.call(1, METHOD + "Translate") + http2.ping())
        begun.until(PingFrame)
        with socket.create_connection(("127.0.0.1", process.port), patient(30)):
            end(process, number)


def request(num_texts: int) -> Any:
    return request_of(distinct_texts(num_texts))


def num_translations(raw: RawConnection) -> int:
    """Return how many the next message has."""
    return len(pb.TranslateResponse.FromString(raw.until(DataFrame).data[5:]).translations)


def test_calls_that_are_sent_or_read_late_are_answered(start: Start) -> None:
    """One has begun at the signal and is sent after it, another's answer has begun and is read only then.

    The second is the control of what a stop does not wait for: it is no longer in flight, but not with its caller yet.
    """
    process = start()
    sent, read = (http2.message(1, request(2).SerializeToString()) for _ in "ab")
    with (
        RawConnection(process.port) as sender,
        RawConnection(process.port, {SettingsFrame.INITIAL_WINDOW_SIZE: 0}) as reader,
    ):
        sender.greeted()
        sender.send(http2.call(1, METHOD + "Translate") + http2.ping())
        sender.until(PingFrame)
        reader.greeted()
        reader.send(http2.call(1, METHOD + "Translate") + read)
        reader.until(HeadersFrame)
        process.signal(signal.SIGTERM)
        sender.until(GoAwayFrame)
        sender.send(sent)
        assert num_translations(sender) == 2
        with pytest.raises(subprocess.TimeoutExpired):
            process.process.wait(2 * LAST_SECONDS)
        reader.send(http2.window_update(0, 2**20) + http2.window_update(1, 2**20))
        assert num_translations(reader) == 2
    assert process.wait(STOP_SECONDS) == (0, "", "")


@pytest.mark.parametrize("number", STOPS)
def test_busy_calls_are_answered(start: Start, number: signal.Signals) -> None:
    process = start("--max-slots", "2", "--grace-seconds", "60", has_http=True)
    body = json.dumps({**CODES, "texts": distinct_texts(NUM_TEXTS)}).encode()
    form = form_of("a.txt", "".join(f"{text}\n" for text in distinct_texts(NUM_TEXTS)), CODES)
    asked = [("/v1/translate", body, JSON)] * 4 + [("/v1/translate/stream", body, JSON)] * 4
    asked += [("/v1/files", *form)] * 2

    def answered_over_http(path: str, content: bytes, content_type: str) -> Reply:
        return call(process.http_url, "POST", path, body=content, content_type=content_type)

    with stub_of(process.address) as stub, ThreadPoolExecutor(14) as pool:
        calls = [stub.Translate.future(request(NUM_TEXTS), timeout=patient(60)) for _ in range(4)]
        streams = [pool.submit(list, stub.TranslateStream(request(NUM_TEXTS), timeout=patient(60))) for _ in range(4)]
        over_http = [pool.submit(answered_over_http, *each) for each in asked]
        eventually(lambda: samples(process.get("/metrics")[2], "dragoman_inflight_requests") == [18.0])
        process.signal(number)
        eventually(lambda: phase(process) == "draining")
        assert not any(all(each.done() for each in kind) for kind in (calls, streams, over_http))  # it proves something
        assert [len(each.result(patient(60)).translations) for each in calls] == [NUM_TEXTS] * 4
        for stream in streams:
            assert sum(part.HasField("translation") for part in stream.result(patient(60))) == NUM_TEXTS
        replies = [each.result(patient(60)) for each in over_http]
    assert [reply.status for reply in replies] == [200] * 10
    assert {len(reply.document["translations"]) for reply in replies[:4]} == {NUM_TEXTS}
    for reply in replies[4:8]:
        parts = events(reply.body)
        assert (parts[-1][0], sum("translation" in said for _, said in parts[:-1])) == ("done", NUM_TEXTS)
    assert {len(reply.body.splitlines()) for reply in replies[8:]} == {NUM_TEXTS}
    assert process.wait(STOP_SECONDS) == (0, "", "")
    is_left_clean(process, [])


def test_busy_calls_of_a_killed_server_fail_with_a_status(start: Start, tiny_models: Path) -> None:
    process = start("--max-slots", "1")
    with stub_of(process.address) as stub:
        calls = [stub.Translate.future(request(300), timeout=patient(60)) for _ in range(4)]
        eventually(lambda: samples(process.get("/metrics")[2], "dragoman_inflight_requests") == [4.0])
        end(process, signal.SIGKILL)
        began = time.monotonic()
        for call in calls:
            with pytest.raises(grpc.RpcError) as raised:
                call.result(patient(30))
            assert rpc_error(raised).code() is grpc.StatusCode.UNAVAILABLE
        assert time.monotonic() - began < STOP_SECONDS
        with ServerProcess(tiny_models, port=process.port):
            assert len(stub.Translate(request(1), timeout=patient(30), wait_for_ready=True).translations) == 1


@pytest.mark.parametrize("number", EVERY)
def test_a_second_signal_while_draining(start: Start, number: signal.Signals) -> None:
    process = start("--drain-delay-seconds", "60")
    process.signal(signal.SIGTERM)
    eventually(lambda: phase(process) == "draining")
    process.signal(number)
    code, _, err = process.wait(STOP_SECONDS)
    assert code == (-number if number == signal.SIGKILL else 128 + number)
    assert len(err.splitlines()) == (0 if number == signal.SIGKILL else 1), err
    is_left_clean(process, [])


@pytest.mark.parametrize("number", [*STOPS, signal.SIGKILL])
def test_while_reloading(start: Start, fault: Path, tiny_bundle: Path, tmp_path: Path, number: signal.Signals) -> None:
    models = tmp_path / "models" / "tiny"
    shutil.copytree(tiny_bundle, models / "1")
    process = start(models=models.parent, program=FAULTY)
    shutil.copytree(tiny_bundle, models / "2")
    fault.write_text("hang")
    process.signal(signal.SIGHUP)
    eventually(lambda: is_met(fault))  # so the reload has begun, and hangs


@pytest.mark.full
def test_while_the_disk_does_not_answer(start: Start, fault: Path) -> None:
    """When the server removes its temporary files: nothing can end that, and the process ends without it."""
    process = start("--grace-seconds", "1", program=FAULTY)
    fault.write_text("stuck")
    end(process, signal.SIGTERM, limit_seconds=patient(40))
    assert is_met(fault)


@pytest.mark.parametrize("number", STOPS)
def test_while_a_client_has_vanished_in_its_call(start: Start, number: signal.Signals) -> None:
    """It neither reads nor answers: the stop takes the grace period, and no longer."""
    process = start("--grace-seconds", "1")
    with RawConnection(process.port, {SettingsFrame.INITIAL_WINDOW_SIZE: 0}) as raw:
        raw.greeted()
        content = request_of(["Hello"]).SerializeToString()
        raw.send(http2.call(1, METHOD + "TranslateStream") + http2.message(1, content))
        eventually(lambda: samples(process.get("/metrics")[2], "dragoman_inflight_requests") == [1.0])
        end(process, number, lines=1)


@pytest.mark.parametrize("delays", [(0.1, 0.6), pytest.param((0.0, 0.1, 0.3, 0.8), marks=pytest.mark.full)])
@pytest.mark.parametrize("number", STOPS)
def test_right_after_the_start(start: Start, number: signal.Signals, delays: tuple[float, ...]) -> None:
    """At several moments before handlers exist: it ends at once, at the latest when it could have been ready."""
    worst = 0.0
    for delay in delays:
        process = start(ready=False)
        with pytest.raises(subprocess.TimeoutExpired):  # moments, not conditions: any of them must do
            process.process.wait(delay)
        began = time.monotonic()
        process.signal(number)
        code, _, _ = process.wait(STOP_SECONDS)
        assert code in {-number, 0, 130 if number == signal.SIGINT else 0}
        worst = max(worst, time.monotonic() - began)


Begin = Callable[[ServerProcess, Path, ExitStack], object]  # returns what has to be kept until the end


def plans(process: ServerProcess, _: Path, held: ExitStack) -> object:
    """Begin calls that are planned for seconds, most of it in RE2."""
    stub = held.enter_context(stub_of(process.address))
    own = [pb.Placeholder(pattern=rf"(?:\w{{0,{count}}}){{30}}!|\w") for count in (30, 29)]
    return [stub.Translate.future(request_of(["a" * 100_000], placeholders=own)) for _ in range(6)]


def decodes(process: ServerProcess, _: Path, held: ExitStack) -> object:
    """Begin calls that are decoded for seconds."""
    stub = held.enter_context(stub_of(process.address))
    return [stub.Translate.future(request(500)) for _ in range(2)], [stub.TranslateStream(request(500))]


def reads(process: ServerProcess, _models: Path, held: ExitStack) -> None:
    """Begin to have documents read, which takes seconds."""
    body, kind = form_of("a.html", "<p>a station<td><b>window</b>" * 60_000, CODES)
    for _ in range(2):
        connection = held.enter_context(socket.create_connection(("127.0.0.1", process.http_port), patient(30)))
        head = f"POST /v1/files HTTP/1.1\r\nHost: a\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)


def tries(process: ServerProcess, models: Path, _: ExitStack) -> None:
    """Begin to try a bundle, and then to load it."""
    shutil.copytree(models / "tiny" / "1", models / "tiny" / "2")
    process.signal(signal.SIGHUP)


LONG = (pytest.mark.full, pytest.mark.timeout(patient(1_200)))


def all_at_once(process: ServerProcess, models: Path, held: ExitStack) -> object:
    return [begin(process, models, held) for begin in KINDS_OF_WORK]


KINDS_OF_WORK: tuple[Begin, ...] = (plans, decodes, reads, tries)


@pytest.mark.parametrize(
    ("begin", "num_stops"), [(all_at_once, 1), *(pytest.param(begin, 50, marks=LONG) for begin in KINDS_OF_WORK)]
)
def test_at_any_moment_of_work(start: Start, tiny_bundle: Path, tmp_path: Path, begin: Begin, num_stops: int) -> None:
    """Threads that are in native code then do not outlive the process, nor end it in their own way."""
    moments = random.Random(begin.__name__)
    worst = 0.0
    for number in range(num_stops):
        models = tmp_path / str(number)
        shutil.copytree(tiny_bundle, models / "tiny" / "1")
        process = start("--grace-seconds", "0.5", models=models, has_http=True)
        with ExitStack() as held:
            kept = begin(process, models, held)
            with pytest.raises(subprocess.TimeoutExpired):  # moments, not conditions: any of them must do
                process.process.wait(moments.uniform(0.0, 1.5))
            began = time.monotonic()
            process.signal(signal.SIGTERM)
            code, _, told = process.wait(STOP_SECONDS)
            worst = max(worst, time.monotonic() - began)
            del kept
        assert code == 0, told
        is_left_clean(process, [])


@pytest.mark.full
def test_bulk_is_interrupted_while_it_plans(tiny_models: Path, tmp_path: Path) -> None:
    """Its threads, in RE2 most of the time, do not abort it either: what is done stays."""
    table, moments = tmp_path / "in.csv", random.Random(1)
    table.write_text("text\n" + f"{'a' * 3_000}\n" * 2_000)
    words = ("--from", "en", "--to", "de", "--placeholder", r"(?:\w{0,30}){30}!|\w", "--models", str(tiny_models))
    for number in range(5):
        command = [sys.executable, "-m", "service", "bulk", str(table), str(tmp_path / f"{number}.csv"), *words]
        with subprocess.Popen(command, cwd=REPOSITORY, env=environment(), stderr=subprocess.PIPE) as process:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(moments.uniform(3.0, 4.0))  # about 2 s after it began to translate
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=STOP_SECONDS)
            assert process.returncode == 130, told
