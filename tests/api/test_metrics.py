"""The metrics as Prometheus reads them: every permanent name is there, and the numbers are those of what was done."""

from collections.abc import Callable
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from service.models.warm_up import SLOT_COUNTS
from service.pb.dragoman.v1 import translation_pb2 as pb
from tests.servers import InProcessServer

# Permanent: dashboards and alerts of other people rely on them. Add, never rename or remove.
NAMES = {
    "dragoman_requests": {"method", "code"},
    "dragoman_request_duration_seconds": {"method", "code"},
    "dragoman_inflight_requests": set(),
    "dragoman_rejected": {"reason"},
    "dragoman_ready": set(),
    "dragoman_draining": set(),
    "dragoman_build_info": {"version", "onnxruntime_version", "provider"},
    "dragoman_model_info": {"model", "version", "precision", "checkpoint_sha256"},
    "dragoman_model_load_seconds": {"model"},
    "dragoman_model_load_failures": {"model"},
    "dragoman_reloads": {"outcome"},
    "dragoman_sentences": {"model", "outcome"},
    "dragoman_source_codepoints": {"model"},
    "dragoman_source_tokens": {"model"},
    "dragoman_target_tokens": {"model"},
    "dragoman_finish": {"model", "reason"},
    "dragoman_request_sentences": {"model"},
    "dragoman_source_length_tokens": {"model"},
    "dragoman_target_length_tokens": {"model"},
    "dragoman_queue_seconds": {"model"},
    "dragoman_tokenize_seconds": {"model"},
    "dragoman_detokenize_seconds": {"model"},
    "dragoman_time_to_first_token_seconds": {"model"},
    "dragoman_time_per_output_token_seconds": {"model"},
    "dragoman_encode_seconds": {"model"},
    "dragoman_encode_padding_ratio": {"model"},
    "dragoman_decode_step_seconds": {"model"},
    "dragoman_step_batch_size": {"model"},
    "dragoman_queue_sequences": {"model"},
    "dragoman_sequences_running": {"model"},
    "dragoman_slots_running": {"model"},
    "dragoman_slots_max": {"model"},
    "dragoman_kv_cache_utilization_ratio": {"model"},
    "dragoman_kv_cache_bytes_per_slot": {"model"},
    "dragoman_coalesced_sequences": {"model"},
    "dragoman_cache_lookups": {"model", "outcome"},
    "dragoman_cache_bytes": set(),
    "dragoman_cache_max_bytes": set(),
    "process_cpu_seconds": set(),
    "process_resident_memory_bytes": set(),
    "process_open_fds": set(),
    "python_gc_collections": {"generation"},
}
METHOD = "dragoman.v1.TranslationService/Translate"


def translate(server: InProcessServer, texts: list[str], **options: Any) -> Any:
    with server.client() as client:
        return client._stub.Translate(
            pb.TranslateRequest(
                texts=texts,
                source_language_code="en",
                target_language_code="de",
                options=pb.DecodingOptions(**options),
            ),
            timeout=30,
        )


def test_all_names_and_labels_are_there(serve: Callable[..., InProcessServer]) -> None:
    server = serve()
    translate(server, ["Hello"])
    with server.client() as client:
        assert client.models()
    rejected = None
    try:
        translate(server, [])
    except Exception as error:
        rejected = error
    assert rejected is not None
    status, content_type, body = server.get("/metrics")
    assert status == 200
    assert content_type.startswith("text/plain")
    found = {
        family.name: set().union(*(sample.labels for sample in family.samples)) - {"le"}
        for family in text_string_to_metric_families(body)
    }
    assert {name: labels for name, labels in found.items() if name in NAMES} == NAMES
    unlisted = {name for name in found if name.startswith("dragoman_") and not name.endswith("_created")} - set(NAMES)
    assert not unlisted


def test_the_numbers_are_those_of_what_was_done(serve: Callable[..., InProcessServer]) -> None:
    server = serve()
    translate(server, ["Hello", "", "keys"], max_output_tokens=4)
    metric = server.metric
    assert metric("dragoman_requests_total", method=METHOD, code="OK") == 1
    assert metric("dragoman_request_duration_seconds_count", method=METHOD, code="OK") == 1
    assert metric("dragoman_sentences_total", model="tiny", outcome="ok") == 2
    assert metric("dragoman_finish_total", model="tiny", reason="length") == 2
    assert metric("dragoman_source_codepoints_total", model="tiny") == len("Hello" + "keys")
    assert metric("dragoman_request_sentences_sum", model="tiny") == 2
    assert metric("dragoman_target_length_tokens_sum", model="tiny") == 8
    assert metric("dragoman_target_tokens_total", model="tiny") == 8
    lengths = metric("dragoman_source_length_tokens_sum", model="tiny")
    assert metric("dragoman_source_tokens_total", model="tiny") == lengths > 2
    assert metric("dragoman_queue_seconds_count", model="tiny") == 2
    assert metric("dragoman_time_to_first_token_seconds_count", model="tiny") == 2
    assert metric("dragoman_time_per_output_token_seconds_count", model="tiny") == 2
    assert metric("dragoman_step_batch_size_sum", model="tiny") == 8
    assert metric("dragoman_decode_step_seconds_count", model="tiny") >= 4
    assert metric("dragoman_encode_seconds_count", model="tiny") >= 1
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


def test_the_self_test_is_not_counted(serve: Callable[..., InProcessServer]) -> None:
    server = serve()
    assert server.metric("dragoman_sentences_total", model="tiny", outcome="ok") == 0
    assert server.metric("dragoman_decode_step_seconds_count", model="tiny") == 0
    assert server.metric("dragoman_model_load_seconds", model="tiny") > 0


def test_the_monitoring_port_knows_three_paths(server: InProcessServer) -> None:
    assert server.get("/livez?verbose")[0] == 200
    assert server.get("/")[0] == 404
    assert server.get("/metricsx")[0] == 404
    assert server.get("/metrics", "HEAD")[2] == ""
    assert server.get("/metrics", "POST")[0] == 405
    openmetrics = server.get("/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert openmetrics[1].startswith("application/openmetrics-text")
    assert openmetrics[2].endswith("# EOF\n")
