"""The metrics as Prometheus reads them: every permanent name exists, and the values match what was done."""

import re
import subprocess
from typing import Any

import grpc
import pytest
from prometheus_client.parser import text_string_to_metric_families

from dragoman_client import ClientError, Flag, Options, Translation
from service.faces.grpc.pb.inference import grpc_service_pb2 as kserve_pb
from service.faces.grpc.pb.inference import grpc_service_pb2_grpc as kserve_grpc
from service.models.warm_up import SLOT_COUNTS
from tests.gate import Gate
from tests.grpc_calls import request_of, stub_of
from tests.patience import patient
from tests.servers import REPOSITORY, InProcessServer, Serve, distinct_texts, eventually
from tests.tools import tool

VERSION = "1"  # of the tiny model

# Permanent: other people's dashboards and alerts rely on them. Add names, never rename or remove any.
NAMES_BY_LABELS = {
    "": """inflight_requests ready draining event_loop_tasks event_loop_silence_seconds memory_bytes memory_limit_bytes
        cache_bytes cache_max_bytes bytes_in_flight bytes_in_flight_max key_requests key_refused key_tokens
        key_source_characters key_source_tokens key_output_tokens key_last_used_seconds event_loop_lag_seconds""",
    "method kind code": "requests request_duration_seconds",
    "protocol": "connections connections_max connections_refused",
    "method kind reason": "rejected",
    "outcome": "reloads",
    "version onnxruntime_version provider": "build_info",
    "model version precision checkpoint_sha256 kernels": "model_info",
    "model": """model_load_seconds model_load_failures source_codepoints source_tokens target_tokens request_sentences
        queue_seconds tokenize_seconds detokenize_seconds time_to_first_token_seconds time_per_output_token_seconds
        encode_seconds encode_padding_ratio decode_step_seconds step_batch_size queue_sequences sequences_running
        slots_running slots_max kv_cache_utilization_ratio kv_cache_bytes_per_slot queue_tokens estimated_wait_seconds
        admissions engine_turn_seconds engine_busy_seconds engine_batches engine_restarts""",
    "model outcome": "sentences cache_lookups",
    "model reason": "evictions",
    "model version": "model_request_duration_seconds source_length_tokens target_length_tokens",
    "model version code": "model_requests",
    "model version reason": "finish",
    "model version flag": "segment_flags",
}
NAMES = {
    **{f"dragoman_{name}": {*labels.split()} for labels, names in NAMES_BY_LABELS.items() for name in names.split()},
    **{name: set() for name in ("process_cpu_seconds", "process_resident_memory_bytes", "process_open_fds")},
    "python_gc_collections": {"generation"},
}
METHOD = "dragoman.v1.TranslationService/Translate"


def translate(server: InProcessServer, texts: list[str], **options: Any) -> list[Translation]:
    with server.client() as client:
        return client.translate(texts, "en", "de", options=Options(**options))


@pytest.fixture(scope="module")
def busy(share: Serve) -> InProcessServer:
    """Return a server that has all metrics, and has answered a call and refused one."""
    server = share(triton_metrics=True, http_port=0)
    translate(server, ["Hello"])
    with server.client() as client:
        assert client.models()
    with pytest.raises(ClientError):
        translate(server, [])
    return server


def test_all_names_and_labels_are_there(busy: InProcessServer) -> None:
    status, content_type, body = busy.get("/metrics")
    assert status == 200
    assert content_type.startswith("text/plain")
    found = {
        family.name: set().union(*(sample.labels for sample in family.samples)) - {"le"}
        for family in text_string_to_metric_families(body)
    }
    assert {name: labels for name, labels in found.items() if name in NAMES} == NAMES
    unlisted = {name for name in found if name.startswith("dragoman_") and not name.endswith("_created")} - set(NAMES)
    assert not unlisted


def test_the_numbers_are_those_of_what_was_done(serve: Serve) -> None:
    server = serve()
    metric = server.metric
    assert metric("dragoman_sentences_total", model="tiny", outcome="ok") == 0  # the self-test is not counted
    assert metric("dragoman_model_load_seconds", model="tiny") > 0
    translate(server, ["Hello", "", "keys"], max_output_tokens=4)
    assert metric("dragoman_requests_total", method=METHOD, code="OK") == 1
    assert metric("dragoman_request_duration_seconds_count", method=METHOD, code="OK") == 1
    assert metric("dragoman_sentences_total", model="tiny", outcome="ok") == 2
    assert metric("dragoman_finish_total", model="tiny", version=VERSION, reason="length") == 2
    assert metric("dragoman_source_codepoints_total", model="tiny") == len("Hello" + "keys")
    assert metric("dragoman_request_sentences_sum", model="tiny") == 2
    assert metric("dragoman_target_length_tokens_sum", model="tiny", version=VERSION) == 8
    assert metric("dragoman_target_tokens_total", model="tiny") == 8
    lengths = metric("dragoman_source_length_tokens_sum", model="tiny", version=VERSION)
    assert metric("dragoman_source_tokens_total", model="tiny") == lengths > 2
    assert metric("dragoman_queue_seconds_count", model="tiny") == 2
    assert metric("dragoman_time_to_first_token_seconds_count", model="tiny") == 2
    assert metric("dragoman_time_per_output_token_seconds_count", model="tiny") == 2
    assert metric("dragoman_step_batch_size_sum", model="tiny") == 8
    assert metric("dragoman_decode_step_seconds_count", model="tiny") >= 4
    assert metric("dragoman_encode_seconds_count", model="tiny") >= 1
    busy = metric("dragoman_engine_busy_seconds_total", model="tiny")
    run = [metric(f"dragoman_{name}_seconds_sum", model="tiny") for name in ("encode", "decode_step")]
    assert sum(run) <= busy < sum(run) + metric("dragoman_request_duration_seconds_sum", method=METHOD, code="OK")
    assert metric("dragoman_engine_batches", model="tiny") >= 1
    assert metric("dragoman_rejected_total", reason="queue_full") == 0
    assert metric("dragoman_slots_max", model="tiny") in SLOT_COUNTS
    assert metric("dragoman_kv_cache_bytes_per_slot", model="tiny") > 1000
    assert metric("dragoman_cache_max_bytes") == 0
    assert metric("dragoman_slots_running", model="tiny") == 0
    assert metric("dragoman_inflight_requests") == 0
    first, rest = (
        metric(f"dragoman_time_{name}_seconds_sum", model="tiny") for name in ("to_first_token", "per_output_token")
    )
    assert 0 < rest < first + 1
    assert 0 < first < metric("dragoman_request_duration_seconds_sum", method=METHOD, code="OK") * 2


def test_the_monitoring_port_knows_three_paths(server: InProcessServer) -> None:
    assert server.get("/livez?verbose")[0] == 200
    assert server.get("/")[0] == 404
    assert server.get("/metricsx")[0] == 404
    assert server.get("/metrics", "HEAD")[2] == ""
    assert server.get("/metrics", "POST")[0] == 405
    openmetrics = server.get("/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert openmetrics[1].startswith("application/openmetrics-text")
    assert openmetrics[2].endswith("# EOF\n")


def test_the_queue_is_told_in_sequences_tokens_and_seconds(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(max_slots=1)
    waiting = distinct_texts(3)
    translate(server, waiting)
    eventually(lambda: server.metric("dragoman_admissions_total", model="tiny") == 3)
    of_waiting = server.metric("dragoman_source_tokens_total", model="tiny")
    gate = Gate(server, monkeypatch)
    with stub_of(server.address) as stub:
        first = stub.Translate.future(request_of(distinct_texts(1)), timeout=patient(30))
        gate.wait()
        second = stub.Translate.future(request_of(waiting), timeout=patient(30))
        eventually(lambda: server.metric("dragoman_queue_sequences", model="tiny") == 3)
        assert server.metric("dragoman_queue_tokens", model="tiny") == of_waiting > 3
        assert 0 < server.metric("dragoman_estimated_wait_seconds", model="tiny") <= 60
        turn = server.metric("dragoman_engine_turn_seconds", model="tiny")
        assert turn > 0
        eventually(lambda: server.metric("dragoman_engine_turn_seconds", model="tiny") > turn + 0.05)
        gate.open()
        assert len(first.result(timeout=patient(30)).translations) == 1
        assert len(second.result(timeout=patient(30)).translations) == 3
    eventually(lambda: server.metric("dragoman_engine_turn_seconds", model="tiny") == 0)
    for name in ("queue_sequences", "queue_tokens", "estimated_wait_seconds"):
        assert server.metric(f"dragoman_{name}", model="tiny") == 0
    assert server.metric("dragoman_admissions_total", model="tiny") == 7
    assert server.metric("dragoman_queue_seconds_count", model="tiny") == 7
    for reason in ("cancelled", "deadline"):
        assert server.metric("dragoman_evictions_total", model="tiny", reason=reason) == 0


def test_only_those_who_ran_are_evicted(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve(max_slots=1)
    gate = Gate(server, monkeypatch)
    with stub_of(server.address) as stub:
        call = stub.Translate.future(request_of(distinct_texts(5)), timeout=patient(30))
        gate.wait()
        call.cancel()
        eventually(lambda: server.metric("dragoman_requests_total", method=METHOD, code="CANCELLED") == 1)
        gate.open()
        eventually(lambda: server.metric("dragoman_sentences_total", model="tiny", outcome="cancelled") == 5)
    assert server.metric("dragoman_evictions_total", model="tiny", reason="cancelled") == 1
    assert server.metric("dragoman_evictions_total", model="tiny", reason="deadline") == 0


@pytest.mark.plain
def test_flagged_segments_are_counted(serve: Serve) -> None:
    server = serve()
    answer = translate(server, [f"{{{number}}} {text}" for number, text in enumerate(distinct_texts(8))])
    flags = [flag for each in answer for segment in each.segments for flag in segment.flags]
    assert set(flags) == {Flag.PLACEHOLDER}, "the tiny model, which has learnt nothing, keeps placeholders"
    assert server.metric("dragoman_segment_flags_total", model="tiny", version=VERSION, flag="placeholder") == len(
        flags
    )
    assert server.metric("dragoman_segment_flags_total", model="tiny", version=VERSION, flag="term") == 0


TRITON = {
    f"nv_inference_{name}"
    for name in (
        *("request_success", "request_failure", "count", "exec_count", "pending_request_count"),
        *("request_duration_us", "queue_duration_us"),
        *("compute_input_duration_us", "compute_infer_duration_us", "compute_output_duration_us"),
    )
}


@pytest.mark.plain
def test_triton_s_metrics_are_its_statistics_and_off_by_default(serve: Serve) -> None:
    assert "nv_inference" not in serve().get("/metrics")[2]
    server = serve(triton_metrics=True)
    translate(server, ["Hello", "keys"], max_output_tokens=4)
    with pytest.raises(grpc.RpcError), stub_of(server.address) as stub:
        stub.Translate(request_of(distinct_texts(1000)), timeout=0.05)
    with grpc.insecure_channel(server.address) as channel:
        kserve = kserve_grpc.GRPCInferenceServiceStub(channel)
        eventually(lambda: server.metric("nv_inference_request_failure", model="tiny", version="1") == 1)
        (stats,) = kserve.ModelStatistics(
            kserve_pb.ModelStatisticsRequest(name="tiny"), timeout=patient(30)
        ).model_stats
    found = {name: value for (name, labels), value in server.metrics().items() if name.startswith("nv_")}
    assert set(found) == TRITON
    assert {labels for name, labels in server.metrics() if name in TRITON} == {
        frozenset({("model", "tiny"), ("version", "1")})
    }
    phases = stats.inference_stats
    assert found["nv_inference_request_success"] == phases.success.count == 1
    assert found["nv_inference_count"] == stats.inference_count == 2
    assert found["nv_inference_exec_count"] >= 1  # of many steps
    assert found["nv_inference_pending_request_count"] == 0
    for name, duration in (
        ("request", phases.success),
        ("queue", phases.queue),
        ("compute_input", phases.compute_input),
        ("compute_infer", phases.compute_infer),
        ("compute_output", phases.compute_output),
    ):
        assert found[f"nv_inference_{name}_duration_us"] == pytest.approx(duration.ns / 1000, abs=1)
    assert 0 < found["nv_inference_compute_infer_duration_us"] < found["nv_inference_request_duration_us"]


def promtool_says(text: str) -> list[str]:
    run = subprocess.run(
        [tool("promtool", "prometheus"), "check", "metrics"],
        input=text,
        capture_output=True,
        text=True,
        timeout=patient(30),
    )
    return (run.stdout + run.stderr).splitlines()


def test_promtool_finds_nothing_to_say(busy: InProcessServer) -> None:
    own: list[str] = []
    foreign: list[str] = []
    for line in busy.get("/metrics")[2].splitlines(keepends=True):
        (foreign if "nv_inference_" in line else own).append(line)
    assert promtool_says("".join(own)) == []
    # Triton's names break Prometheus' naming conventions; everything else must be correct.
    about_names = ("abbreviated unit", '"_count" suffix')
    assert not [line for line in promtool_says("".join(foreign)) if not any(each in line for each in about_names)]
    bad = "".join(own).replace("dragoman_requests_total", "dragoman_requests")
    assert promtool_says(bad)  # proves that the check works


def documented() -> set[str]:
    """Return the names in the tables of docs/operations.md, section "Metrics"."""
    section = re.split(r"^## ", (REPOSITORY / "docs/operations.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    (metrics,) = (each for each in section if each.startswith("Metrics\n"))
    first_cells = re.findall(r"^\| (`[^|]*) \|", metrics, re.MULTILINE)
    return {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)}


def test_every_metric_is_documented_and_every_documented_one_is_there(busy: InProcessServer) -> None:
    types = re.findall(r"^# TYPE (\S+) ", busy.get("/metrics")[2], re.MULTILINE)
    exposed = {name.removeprefix("dragoman_") for name in types if name.startswith(("dragoman_", "nv_"))}
    only_with_tls = {"tls_certificate_not_after_seconds"}
    assert {name for name in exposed if not name.endswith("_created")} == documented() - only_with_tls


def test_the_lag_of_the_event_loop_is_measured_all_the_time(server: InProcessServer) -> None:
    before = server.metric("dragoman_event_loop_lag_seconds_count")
    eventually(lambda: server.metric("dragoman_event_loop_lag_seconds_count") > before + 1)
    assert server.metric("dragoman_event_loop_lag_seconds_sum") >= 0


@pytest.mark.parametrize("version", ["x", "1.x.0", "", "1.0.0; q=NaN", "9" * 5000])
def test_a_version_that_is_none_is_answered_all_the_same(server: InProcessServer, version: str) -> None:
    status, _, body = server.get("/metrics", Accept=f"application/openmetrics-text; version={version}")
    assert status == 200
    assert "dragoman_requests" in body
