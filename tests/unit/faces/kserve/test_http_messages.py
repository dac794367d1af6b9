"""KServe over HTTP: routes, messages in JSON and binary, and answers; wrong ones never cause more than a rejection."""

import json
import struct
from typing import Any, cast

import pytest

from service.domain.errors import InvalidRequest
from service.domain.translation import Priority
from service.faces.grpc.pb.inference import grpc_service_pb2 as pb
from service.faces.http.application import HttpRequest
from service.faces.http.routes import Routes
from service.faces.kserve.http import KServe
from service.faces.kserve.http_messages import (
    answer_of,
    binary_outputs,
    document_of,
    fill,
    infer_body_of,
    infer_request,
)
from service.faces.kserve.messages import priority_of
from service.faces.kserve.methods import KServeMethods
from service.faces.kserve.tensors import raw_of

TEXTS = ["ab", "", "ä\U0001f600"]
RAW = b"\x02\0\0\0ab\0\0\0\0\x06\0\0\0\xc3\xa4\xf0\x9f\x98\x80"
NUM_BYTES = len(RAW)


def text(**fields: Any) -> dict[str, Any]:
    return {"name": "text", "datatype": "BYTES", "shape": [3], **fields}


def in_json(**fields: Any) -> dict[str, Any]:
    return {"inputs": [text(data=TEXTS)], **fields}


def in_binary(size: Any = NUM_BYTES, **fields: Any) -> dict[str, Any]:
    return {"inputs": [text(parameters={"binary_data_size": size})], **fields}


def posted(
    document: Any, data: bytes = b"", length: str | None = None, version: str = "", **headers: str
) -> HttpRequest:
    """Return a request; with `data`, the header tells where they begin, or says `length`."""
    whole = document if isinstance(document, bytes) else json.dumps(document).encode()
    if data or length is not None:
        headers["inference-header-content-length"] = str(len(whole)) if length is None else length
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    parts = {"name": "tiny", **({"version": version} if version else {})}
    return HttpRequest("POST", "/v2/models/tiny/infer", named, whole + data, parts=parts)


def message_of(request: HttpRequest) -> Any:
    """Return the message that a request becomes, in all the steps that the face takes."""
    body, data = infer_body_of(request)
    binary_outputs(body)
    return infer_request(("tiny", ""), body, data)


def priority(parameters: dict[str, int]) -> Priority:
    message = pb.ModelInferRequest()
    fill(message.parameters, parameters)
    return priority_of(message)


def elements(request: HttpRequest) -> list[list[str]]:
    return [[each.decode() for each in tensor.contents.bytes_contents] for tensor in message_of(request).inputs]


def test_texts_are_the_same_in_json_and_in_binary() -> None:
    assert elements(posted(in_json())) == [TEXTS]
    assert elements(posted(in_binary(), RAW)) == [TEXTS]
    assert raw_of([each.encode() for each in TEXTS]) == RAW


def test_data_follow_in_the_order_of_the_inputs_that_have_them_there() -> None:
    def named(name: str, **fields: Any) -> dict[str, Any]:
        return {"name": name, "datatype": "BYTES", "shape": [1], **fields}

    one, two = raw_of([b"a"]), raw_of([b"xyz"])
    inputs = [
        named("one", parameters={"binary_data_size": len(one)}),
        named("in between", data=["b"]),
        named("two", parameters={"binary_data_size": len(two)}),
    ]
    assert elements(posted({"inputs": inputs}, one + two)) == [["a"], ["b"], ["xyz"]]


@pytest.mark.parametrize(
    ("of_request", "of_outputs", "score", "translation"),
    [
        (None, {}, False, False),
        (True, {}, True, True),
        (True, {"score": None, "translation": None}, True, True),
        (True, {"score": False}, False, True),
        (None, {"score": True, "translation": None}, True, False),
    ],
)
def test_an_output_s_own_parameter_precedes_the_request_s(
    of_request: bool | None, of_outputs: dict[str, bool | None], score: bool, translation: bool
) -> None:
    outputs = [{"name": name, "parameters": {"binary_data": own}} for name, own in of_outputs.items()]
    body, _ = infer_body_of(posted(in_json(parameters={"binary_data_output": of_request}, outputs=outputs)))
    is_binary = binary_outputs(body)
    assert (is_binary("score"), is_binary("translation")) == (score, translation)


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (posted(b""), "inputs is missing"),
        (posted({"inputs": [text(data=[1, 2, 3])]}), "inputs[text].data[0] is not a text"),
        (posted({"inputs": [text(data=["a", ["b"], "c"])]}), "inputs[text].data[1] is not a text"),
        (posted({"inputs": [text(data="abc")]}), "inputs[0].data is 'abc'; allowed: a list"),
        (posted({"inputs": [{**text(), "shape": [2**70]}]}), "inputs[0].shape[0]"),
        (posted(in_json(model_name="other")), "model_name is 'other', and 'tiny' in the URL"),
        (posted(in_json(model_version="2"), version="1"), "model_version is '2', and '1' in the URL"),
        (posted(in_json(parameters={"beam_size": [1]})), "parameters[beam_size] can't be sent"),
        (posted(in_json(parameters={"seed": 2**63})), "parameters[seed] can't be sent"),
        (posted(in_json(parameters={"binary_data_output": 1})), "parameters[binary_data_output] is 1"),
        (
            posted(in_json(outputs=[{"name": "score", "parameters": {"binary_data": "yes"}}])),
            "outputs[score].parameters[binary_data] is 'yes'; allowed: true or false",
        ),
        (posted({"inputs": [text(data=TEXTS, parameters={"x": {}})]}), "inputs[text].parameters[x] can't be sent"),
        (posted(in_json(), length="0"), "Inference-Header-Content-Length is '0'"),
        (posted(in_json(), length="9999"), "Inference-Header-Content-Length is '9999'; allowed: 1 to"),
        (posted(in_json(), length="9" * 5000), "Inference-Header-Content-Length is '999"),
        (posted(in_json(), length="²"), "Inference-Header-Content-Length is '²'"),
        (posted(in_json(), length="5"), "not JSON"),
        (posted(in_binary()), f"binary_data_size] is {NUM_BYTES}; allowed: 0 to 0"),
        (posted(in_binary(NUM_BYTES + 1), RAW), f"is {NUM_BYTES + 1}; allowed: 0 to {NUM_BYTES}"),
        (posted(in_binary(NUM_BYTES - 6), RAW), "'text' ends within element 2"),
        (posted(in_binary(NUM_BYTES), RAW + b"abc"), "3 bytes after the data of its inputs"),
        (posted(in_binary(-1), RAW), "binary_data_size] is -1"),
        (posted(in_binary(True), RAW), "binary_data_size] is true"),
        (posted(in_binary("3"), RAW), "binary_data_size] is '3'"),
        (posted(in_json(), RAW), f"{NUM_BYTES} bytes after the data of its inputs"),
        (
            posted({"inputs": [text(data=TEXTS, parameters={"binary_data_size": NUM_BYTES})]}, RAW),
            "inputs[text] has data, and parameter 'binary_data_size'; give one of the two",
        ),
    ],
)
def test_a_wrong_request_is_refused(request_: HttpRequest, says: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        message_of(request_)
    assert says in str(raised.value)


def test_what_the_messages_reject_themselves_gets_there_without_contents() -> None:
    """A wrong datatype or shape is reported by `texts_of`, which all faces share."""
    wrongs: list[dict[str, Any]] = [{"datatype": "INT32"}, {"shape": [3, 1]}, {"shape": [-1]}, {"shape": []}]
    for wrong in wrongs:
        for request in (
            posted({"inputs": [text(data=TEXTS) | wrong]}),
            posted({"inputs": [in_binary()["inputs"][0] | wrong]}, RAW),
        ):
            [tensor] = message_of(request).inputs
            given = {"datatype": tensor.datatype, "shape": list(tensor.shape)}
            assert given == {"datatype": "BYTES", "shape": [3], **wrong}
    binary = {"inputs": [text(parameters={"binary_data_size": 12}) | {"datatype": "INT32"}]}
    assert elements(posted(binary, struct.pack("<3i", 1, 2, 3))) == [[]]


def answer(**fields: Any) -> pb.ModelInferResponse:
    made = pb.ModelInferResponse(model_name="tiny", **fields)
    text = made.outputs.add(name="translation", datatype="BYTES", shape=[2])
    text.contents.bytes_contents.extend(["ä".encode(), b""])
    made.outputs.add(name="score", datatype="FP32", shape=[2]).contents.fp32_contents.extend([-0.5, 1.0])
    return made


@pytest.mark.parametrize(
    ("wanted", "sizes", "data"),
    [
        ({"score"}, [None, {"binary_data_size": 8}], b"\0\0\0\xbf\0\0\x80\x3f"),
        ({"translation"}, [{"binary_data_size": 10}, None], b"\x02\0\0\0\xc3\xa4\0\0\0\0"),
        (
            {"score", "translation"},
            [{"binary_data_size": 10}, {"binary_data_size": 8}],
            b"\x02\0\0\0\xc3\xa4\0\0\0\0\0\0\0\xbf\0\0\x80\x3f",
        ),
    ],
)
def test_an_answer_with_binary_data(wanted: set[str], sizes: list[Any], data: bytes) -> None:
    given = answer_of(answer(), lambda name: name in wanted)
    assert given.content_type == "application/octet-stream"
    length = int(given.headers["Inference-Header-Content-Length"])
    document = json.loads(given.body[:length])
    assert "id" not in document
    assert [each.get("parameters") for each in document["outputs"]] == sizes
    assert [each["name"] for each in document["outputs"] if "data" not in each] == sorted(wanted, reverse=True)
    assert given.body[length:] == data


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


def test_the_priority_is_known_without_the_tensors() -> None:
    for number, expected in (0, Priority.NORMAL), (1, Priority.HIGH), (2, Priority.NORMAL), (3, Priority.LOW):
        assert priority({"priority": number} if number else {}) is expected
    with pytest.raises(InvalidRequest):
        priority({"priority": 4})


ROUTES = Routes(KServe(cast(KServeMethods, None), 60.0).routes())


@pytest.mark.parametrize(
    ("method", "path", "name", "parts"),
    [
        ("GET", "/v2", "metadata", {}),
        ("GET", "/v2/models/stats", "model_stats", {}),
        ("GET", "/v2/models/stats/stats", "model_stats", {"name": "stats"}),
        ("GET", "/v2/models/a%20b", "model_metadata", {"name": "a b"}),
        ("GET", "/v2/models/a/versions/3", "model_metadata", {"name": "a", "version": "3"}),
        ("GET", "/v2/models/a/versions/3/ready", "model_ready", {"name": "a", "version": "3"}),
        ("POST", "/v2/models/a/versions/3/infer", "infer", {"name": "a", "version": "3"}),
        ("POST", "/v2/repository/index", "repository_index", {}),
        ("POST", "/v2/repository/other/index", "repository_index", {"repository": "other"}),
        ("POST", "/v2/repository/models/a/unload", "unload", {"name": "a"}),
        ("POST", "/v2/repository/other/models/a/load", "load", {"repository": "other", "name": "a"}),
        ("GET", "/v2/models/a/trace/setting", "trace_setting", {"name": "a"}),
        ("POST", "/v2/cudasharedmemory/region/r/register", "shared_memory", {"region": "r"}),
    ],
)
def test_paths_are_triton_s(method: str, path: str, name: str, parts: dict[str, str]) -> None:
    found = ROUTES.find(path)
    assert found is not None
    assert found.by_method[method].name == f"http/kserve/{name}"
    assert found.parts == parts


def test_probes_of_the_server_need_no_key_and_only_inference_queues() -> None:
    open_to_all = {route.path for route in ROUTES.all if not route.needs_key}
    assert open_to_all == {"/v2/health/live", "/v2/health/ready"}
    assert {route.name for route in ROUTES.all if route.queues} == {"http/kserve/infer"}
