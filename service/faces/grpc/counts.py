"""Limits on the entries of lists in messages: `faces/fields.py`, applied to protobuf."""

from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from service.domain.translation import MAX_TEXTS
from service.faces.fields import MAX_LABELS, MAX_OWN_PLACEHOLDERS, MAX_TERMS, SEVERAL_CALLS, check_count
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as google_pb
from service.faces.grpc.pb.inference import grpc_service_pb2 as kserve_pb

MAX_PARAMETERS = 64
MAX_TENSORS = 16  # more than a model has, so that an error can name an unknown tensor
MAX_DIMENSIONS = 8  # likewise
_GLOSSARY = "keep larger glossaries on the server"
_FEWER = "send fewer"

MAXIMA: Mapping[type[Message], Mapping[str, tuple[int, str]]] = {
    pb.TranslateRequest: {
        "texts": (MAX_TEXTS, SEVERAL_CALLS),
        "target_prefixes": (MAX_TEXTS, SEVERAL_CALLS),
        "terms": (MAX_TERMS, _GLOSSARY),
        "placeholders": (MAX_OWN_PLACEHOLDERS, _FEWER),
        "labels": (MAX_LABELS, _FEWER),
    },
    pb.DetectLanguageRequest: {"texts": (MAX_TEXTS, SEVERAL_CALLS)},
    google_pb.TranslateTextRequest: {"contents": (MAX_TEXTS, SEVERAL_CALLS), "labels": (MAX_LABELS, _FEWER)},
    google_pb.DetectLanguageRequest: {"labels": (MAX_LABELS, _FEWER)},
    kserve_pb.ModelInferRequest: {
        "parameters": (MAX_PARAMETERS, _FEWER),
        "inputs": (MAX_TENSORS, _FEWER),
        "outputs": (MAX_TENSORS, _FEWER),
        "raw_input_contents": (MAX_TENSORS, _FEWER),
    },
    kserve_pb.ModelInferRequest.InferInputTensor: {
        "shape": (MAX_DIMENSIONS, _FEWER),
        "parameters": (MAX_PARAMETERS, _FEWER),
    },
    kserve_pb.ModelInferRequest.InferRequestedOutputTensor: {"parameters": (MAX_PARAMETERS, _FEWER)},
}


def checked_fields(message: Message, within: str = "") -> Sequence[tuple[FieldDescriptor, Any]]:
    """Return a message's fields; raise `TooMany` for a long list, but of submessages. `within` prefixes its name."""
    maxima, given = MAXIMA[type(message)], message.ListFields()
    for field, value in given:
        if field.name in maxima and len(value) > maxima[field.name][0]:
            check_count(f"{within}{field.name}", len(value), *maxima[field.name])
    return given


def check_counts_of_json(document: Any, kind: type[Message]) -> None:
    """Check a document in protobuf's JSON as `checked_fields` checks a message of that kind."""
    if not isinstance(document, dict):
        return  # the parser reports the error
    for field, (most, advice) in MAXIMA[kind].items():
        for name in (field, kind.DESCRIPTOR.fields_by_name[field].camelcase_name):
            if isinstance(entries := document.get(name), list | dict):
                check_count(field, len(entries), most, advice)
