"""Conversion between KServe v2's inference messages and domain types."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.domain.errors import InvalidRequest, Path, Public, Quoted, counted, dotted
from service.domain.options import OPTIONS, RequestedOptions
from service.domain.translation import (
    MAX_TEXTS,
    REQUEST_OPTIONS,
    Priority,
    TranslationRequest,
    TranslationResult,
)
from service.faces.grpc.counts import checked_fields
from service.faces.grpc.pb.inference import grpc_service_pb2 as pb
from service.faces.json_text import shown_as_json
from service.faces.kserve.tensors import (
    FINISH_REASON,
    INPUTS,
    OUTPUTS,
    SCORE,
    SOURCE,
    TARGET,
    TEXT,
    TRANSLATION,
    check_parameters,
    raw_of,
    raw_of_floats,
    texts_of,
)
from service.models.loaded_model import LoadedModel
from service.translation.source_languages import Part

_OPTIONS = {name: option.kind for name, option in OPTIONS.items() if not option.shapes_answer}
_FIELDS = {name: option.kind for name, option in REQUEST_OPTIONS.items() if option.in_parameters}
_KNOWN = {"priority": int, "timeout": int, SOURCE: str, TARGET: str} | _FIELDS | _OPTIONS
# Set by clients of Triton and MLServer on their own, or meant for other kinds of models.
_IGNORED = {"content_type", "sequence_id", "sequence_start", "sequence_end", "binary_data_output", "headers"}
_IGNORED_PREFIX = "triton_"
_PRIORITIES = {0: Priority.NORMAL, 1: Priority.HIGH, 2: Priority.NORMAL, 3: Priority.LOW}
_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}


@dataclass(frozen=True, slots=True)
class InferCall:
    """A parsed ModelInferRequest: a part for each language pair; shape and names of outputs; whether they are raw."""

    parts: tuple[Part, ...]
    shape: tuple[int, ...]
    outputs: tuple[str, ...]
    is_raw: bool


def call_from_pb(
    message: pb.ModelInferRequest, model: LoadedModel, now_seconds: float, deadline_seconds: float
) -> InferCall:
    """Return the caller's request of `model`; times are on the clock of `time.monotonic()`.

    Raise `InvalidRequest` for an unknown, missing or wrong tensor or parameter, `Unimplemented` for shared memory or
    classification.
    """
    checked_fields(message)
    outputs = _outputs_from_pb(message)
    given = _parameters_from_pb(message)
    tensors, is_raw = _tensors_from_pb(message)
    texts = tensors.get(TEXT)
    if not texts:
        raise InvalidRequest(
            "tensor 'text' is missing or empty", f"inputs[{TEXT}]", advice=f"give 1 to {MAX_TEXTS} texts"
        )
    source, target = _only_pair(model)
    sources = _languages(tensors, given, SOURCE, source, len(texts))
    targets = _languages(tensors, given, TARGET, target, len(texts))
    if not all(targets):
        raise InvalidRequest(
            "tensor 'target_language' is missing or has an empty element; model {model} translates several pairs",
            f"inputs[{TARGET}]",
            model=Public(repr(model.name)),
            advice="give one code for all texts or one for each, as a tensor or as a parameter",
        )
    timeout = given.get("timeout", 0)
    positions: dict[tuple[str, str], list[int]] = {}
    for position, languages in enumerate(zip(sources, targets, strict=True)):
        positions.setdefault(languages, []).append(position)
    options = RequestedOptions(
        **{name: given[name] for name in _OPTIONS if name in given}, return_scores=True if SCORE in outputs else None
    )
    fields = {REQUEST_OPTIONS[name].attribute: given[name] for name in _FIELDS if name in given}
    parts = tuple(
        Part(
            TranslationRequest(
                texts=tuple(texts[position] for position in chosen),
                source_language_code=source,
                target_language_code=target,
                model=message.model_name,
                model_version=message.model_version,
                options=options,
                priority=_priority(given),
                deadline_seconds=min(deadline_seconds, now_seconds + timeout / 1e6) if timeout else deadline_seconds,
                **fields,
            ),
            tuple(chosen),
        )
        for (source, target), chosen in positions.items()
    )
    shape = next(tuple(tensor.shape) for tensor in message.inputs if tensor.name == TEXT)
    return InferCall(parts, shape, outputs, is_raw)


def priority_of(message: pb.ModelInferRequest) -> Priority:
    """Return the priority that parameters ask for; raise `InvalidRequest` if one is unknown or wrong."""
    return _priority(_parameters_from_pb(message))


def spelled(path: Path) -> str:
    """Return the path of a request's field in this API's terms: a tensor's element, or a parameter."""
    match path:
        case ("texts", *rest):
            return dotted(Path(TEXT, *rest))
        case ("options", str(name)):
            return dotted(_path_of(name))
    return dotted(path)


def results_to_pb(call: InferCall, results: Sequence[TranslationResult], identifier: str) -> pb.ModelInferResponse:
    translations = {
        position: translation
        for part, result in zip(call.parts, results, strict=True)
        for position, translation in zip(part.indices, result.translations, strict=True)
    }
    in_order = [translations[position] for position in range(len(translations))]
    response = pb.ModelInferResponse(model_name=results[0].model, model_version=results[0].model_version, id=identifier)
    for name in call.outputs:
        tensor = response.outputs.add(name=name, datatype=OUTPUTS[name], shape=call.shape)
        if name == SCORE:
            # A text returned unchanged has no score; it counts as certain.
            scores = [translation.hypotheses[0].score or 0.0 for translation in in_order]
            if call.is_raw:
                response.raw_output_contents.append(raw_of_floats(scores))
            else:
                tensor.contents.fp32_contents.extend(scores)
            continue
        elements = [(each.text if name == TRANSLATION else each.finish_reason.value).encode() for each in in_order]
        if call.is_raw:
            response.raw_output_contents.append(raw_of(elements))
        else:
            tensor.contents.bytes_contents.extend(elements)
    return response


def _priority(given: Mapping[str, Any]) -> Priority:
    return _PRIORITIES[given.get("priority", 0)]


def _only_pair(model: LoadedModel) -> tuple[str, str]:
    """Return the codes of the model's only language pair; empty ones if it has several."""
    listed = model.pairs.listed
    return listed[0] if len(listed) == 1 and not model.pairs.any_to_any else ("", "")


def _outputs_from_pb(message: pb.ModelInferRequest) -> tuple[str, ...]:
    names = tuple(output.name for output in message.outputs)
    _check_names("output", names, OUTPUTS)
    for output in message.outputs:
        checked_fields(output, f"outputs[{output.name}].")
        check_parameters(output.name, output.parameters)
    return names or (TRANSLATION, FINISH_REASON)


def _tensors_from_pb(message: pb.ModelInferRequest) -> tuple[dict[str, list[str]], bool]:
    _check_names("input", [tensor.name for tensor in message.inputs], INPUTS)
    raw = message.raw_input_contents
    if not raw:
        return {tensor.name: texts_of(tensor, None) for tensor in message.inputs}, False
    for tensor in message.inputs:
        if tensor.HasField("contents"):
            raise InvalidRequest(
                "tensor {tensor} has contents, and the request has raw_input_contents",
                f"inputs[{tensor.name}]",
                tensor=Public(repr(tensor.name)),
                advice="give one of the two",
            )
    if len(raw) != len(message.inputs):
        names = ", ".join(repr(tensor.name) for tensor in message.inputs) or "none"
        raise InvalidRequest(
            "{path} has {entries}",
            Path("raw_input_contents"),
            entries=Public(counted(len(raw), "entry", "entries")),
            advice=f"expected one for each input tensor: {names}",
        )
    return {tensor.name: texts_of(tensor, each) for tensor, each in zip(message.inputs, raw, strict=True)}, True


def _check_names(kind: str, names: Sequence[str], known: dict[str, str]) -> None:
    for index, name in enumerate(names):
        if name not in known:
            raise InvalidRequest(
                "tensor {tensor} is not an {kind}",
                f"{kind}s[{name[:60]}]",
                tensor=name,
                kind=Public(kind),
                advice=f"the model has {', '.join(known)}",
            )
        if name in names[:index]:
            raise InvalidRequest(
                "tensor {tensor} is given twice as {kind}",
                f"{kind}s[{name}]",
                tensor=Public(repr(name)),
                kind=Public(kind),
                advice="give it once",
            )


def _languages(
    tensors: dict[str, list[str]], given: dict[str, Any], name: str, default: str, num_texts: int
) -> list[str]:
    """Return one language code for each text; empty where none was given and there is no `default`."""
    codes = tensors.get(name, [given.get(name, "")])
    if len(codes) not in (1, num_texts):
        raise InvalidRequest(
            "tensor {tensor} has {number} elements",
            f"inputs[{name}]",
            tensor=Public(repr(name)),
            number=len(codes),
            advice=f"expected 1 or {num_texts}, as many as '{TEXT}'",
        )
    return [code or default for code in (codes if len(codes) == num_texts else codes * num_texts)]


def _parameters_from_pb(message: pb.ModelInferRequest) -> dict[str, Any]:
    """Return the known parameters, checked; ignore those that clients of Triton send on their own."""
    given = {}
    for name, parameter in message.parameters.items():
        if name in _KNOWN:
            given[name] = _parameter_from_pb(name, parameter, _KNOWN[name])
        elif name not in _IGNORED and not name.startswith(_IGNORED_PREFIX):
            known = ", ".join(sorted(_KNOWN))
            raise InvalidRequest("parameter {name} is unknown", _path_of(name), name=name, advice=f"known: {known}")
    if given.get("priority", 0) not in _PRIORITIES:
        raise _wrong("priority", given["priority"], "1 (high), 2 or 0 (normal), 3 (low)")
    if given.get("timeout", 0) < 0:
        raise _wrong("timeout", given["timeout"], "microseconds, 0 for none")
    for name in given.keys() & _OPTIONS.keys():
        option = OPTIONS[name]
        if not option.permits(given[name], option.high):
            raise _wrong(name, given[name], option.allowed())
    return given


def _parameter_from_pb(name: str, parameter: pb.InferParameter, kind: Any) -> Any:
    choice = parameter.WhichOneof("parameter_choice")
    value = getattr(parameter, choice) if choice else None
    if issubclass(kind, enum.Enum):
        allowed = [each.value for each in kind]
        if value not in allowed:
            raise _wrong(name, Quoted(shown_as_json(value)), ", ".join(allowed))
        return kind(value)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise _wrong(name, Quoted(shown_as_json(value)), advice=f"expected {_KINDS[kind]}")
    return value


def _wrong(name: str, value: object, allowed: str = "", advice: str = "") -> InvalidRequest:
    return InvalidRequest(
        "parameter {name} is {value}",
        _path_of(name),
        name=Public(repr(name)),
        value=value,
        allowed=allowed,
        advice=advice,
    )


def _path_of(parameter: str) -> Path:
    return Path(f"parameters[{parameter[:60]}]")
