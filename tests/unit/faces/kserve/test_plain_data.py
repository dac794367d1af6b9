"""KServe's messages as Triton writes them in JSON, and their priority."""

import pytest

from service.domain.errors import InvalidRequest
from service.domain.translation import Priority
from service.faces.grpc.pb.inference import grpc_service_pb2 as pb
from service.faces.kserve.messages import priority_of
from service.faces.kserve.plain_data import document_of, output_tensors, parameters_of_request


def test_numbers_of_64_bits_are_numbers_and_empty_fields_are_there() -> None:
    success = pb.InferStatistics(success=pb.StatisticDuration(count=1))
    message = pb.ModelStatisticsResponse(
        model_stats=[pb.ModelStatistics(name="tiny", last_inference=2**40, inference_stats=success)]
    )
    assert document_of(message) == {
        "model_stats": [
            {
                "name": "tiny",
                "version": "",
                "last_inference": 2**40,
                "inference_count": 0,
                "execution_count": 0,
                "inference_stats": {"success": {"count": 1, "ns": 0}},
                "batch_stats": [],
            }
        ]
    }


def test_words_of_enums_maps_and_members_of_a_oneof() -> None:
    config = pb.ModelConfig(
        name="tiny",
        output=[pb.ModelOutput(name="score", data_type=pb.TYPE_FP32, dims=[-1])],
        parameters={"b": pb.ModelParameter(string_value="2"), "a": pb.ModelParameter(string_value="1")},
    )
    document = document_of(config)
    assert document["output"] == [{"name": "score", "data_type": "TYPE_FP32", "dims": [-1]}]
    assert list(document["parameters"].items()) == [("a", {"string_value": "1"}), ("b", {"string_value": "2"})]
    assert "model_transaction_policy" not in document
    assert document_of(pb.InferParameter(bool_param=False)) == {"bool_param": False}


def test_outputs_are_raw_as_wanted() -> None:
    response = pb.ModelInferResponse()
    text = response.outputs.add(name="translation", datatype="BYTES", shape=[2])
    text.contents.bytes_contents.extend([b"a", "ä".encode()])
    response.outputs.add(name="score", datatype="FP32", shape=[2]).contents.fp32_contents.extend([0.5, 1.0])
    plain = output_tensors(response, lambda _: False)
    assert [tensor.data for tensor in plain] == [["a", "ä"], [0.5, 1.0]]
    raw = output_tensors(response, lambda name: name == "score")
    assert [tensor.data for tensor in raw] == [["a", "ä"], b"\0\0\0\x3f\0\0\x80\x3f"]
    [translation, _] = output_tensors(response, lambda name: name == "translation")
    assert translation.data == b"\x01\0\0\0a\x02\0\0\0\xc3\xa4"


def test_the_priority_is_known_without_the_tensors() -> None:
    for given, expected in ({}, Priority.NORMAL), ({"priority": 1}, Priority.HIGH), ({"priority": 3}, Priority.LOW):
        assert priority_of(parameters_of_request(given)) is expected
    with pytest.raises(InvalidRequest):
        priority_of(parameters_of_request({"priority": 4}))
