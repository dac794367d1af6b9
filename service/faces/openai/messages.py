"""OpenAI's messages; language pairs are names of models: `en-de`, `dragoman/en-de`, or `NAME:en-de` of one model.

Source: https://platform.openai.com/docs/api-reference/chat, and /responses.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

from service.domain.errors import InvalidRequest, NotFound, Path, Unimplemented
from service.domain.translation import MAX_TEXTS, FinishReason, Translation
from service.faces.http.bounded import Anything, AtMost, Name
from service.models.catalogue import Catalogue
from service.models.loaded_model import LoadedModel

Document = dict[str, Any]

AUTO = "auto"  # as source: the text's language is detected
_OWNER = "dragoman/"

# What no translation has, and the values with which it is not asked for.
_UNSUPPORTED: tuple[tuple[str, Sequence[object]], ...] = (
    ("tools", (None, [])),
    ("functions", (None, [])),
    ("logprobs", (None, False)),
    ("response_format", (None, {"type": "text"})),
    ("background", (None, False)),
)
_TEXTS = ("text", "input_text")  # parts of a message, of chats and of responses


class ChatMessage(BaseModel):
    """One turn of a conversation."""

    role: Name
    content: Anything = None


class StreamOptions(BaseModel):
    """Options of a stream, beside the text."""

    include_usage: bool | None = None


class _Body(BaseModel):
    """A call. Unknown fields are ignored, but for those of `_UNSUPPORTED`: most tune a model that chats."""

    model_config = ConfigDict(extra="allow")

    model: Name
    stream: bool | None = None


class ChatBody(_Body):
    """A call for the next turn of a conversation."""

    messages: Annotated[list[ChatMessage], AtMost(MAX_TEXTS)]
    stream_options: StreamOptions | None = None
    n: int | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None


def _as_items(value: object) -> object:
    return [{"role": "user", "content": value}] if isinstance(value, str) else value


class InputItem(ChatMessage):
    """A turn, or what else a response may be for, which has no role."""

    role: Name = ""


class TextFormat(BaseModel):
    """The format of a response."""

    type: Literal["text"] = "text"


class TextOptions(BaseModel):
    """Options of a response's text."""

    format: TextFormat | None = None


class ResponseBody(_Body):
    """A call for a response to an input."""

    input: Annotated[list[InputItem], AtMost(MAX_TEXTS), BeforeValidator(_as_items)]
    text: TextOptions | None = None
    max_output_tokens: int | None = None


def text_of(body: ChatBody | ResponseBody) -> str:
    """Return the last message of the user; raise `InvalidRequest` without one, `Unimplemented` for other tasks."""
    for name, harmless in _UNSUPPORTED:
        if (body.model_extra or {}).get(name) not in harmless:
            raise Unimplemented("{path} is not supported by this server", Path(name), advice="leave it out")
    name, turns = ("messages", body.messages) if isinstance(body, ChatBody) else ("input", body.input)
    for index in reversed(range(len(turns))):
        if turns[index].role == "user":
            return _text(turns[index].content, Path(name, index, "content"))
    raise InvalidRequest("{path} has no message of role user", Path(name), advice="the last one is translated")


def _text(content: object, path: Path) -> str:
    if isinstance(content, str):
        return content
    parts = [each if isinstance(each, dict) else {} for each in content] if isinstance(content, list) else []
    texts = [each.get("text") if each.get("type") in _TEXTS else None for each in parts]
    wrong = next((Path(*path, index) for index, each in enumerate(texts) if not isinstance(each, str)), None)
    if wrong or not texts:
        advice = 'give a string, or parts such as {"type": "text", "text": "Hello"}'
        raise InvalidRequest("{path} is not text", wrong or path, advice=advice)
    return "\n".join(map(str, texts))


def completion(about: Document, translation: Translation) -> Document:
    """Return the whole answer; `about` is what the answers to a call have in common."""
    choices = [
        {"index": index, "message": {"role": "assistant", "content": each.text}, **_ended(each.finish_reason)}
        for index, each in enumerate(translation.hypotheses)
    ]
    return {**about, "object": "chat.completion", "choices": choices, "usage": _usage(translation)}


def chunk(about: Document, delta: Document, ended: Translation | None = None) -> Document:
    """Return a part of an answer; `ended` is the whole, after its last part."""
    choice = {"index": 0, "delta": delta, **_ended(ended.finish_reason if ended else None)}
    return {**about, "object": "chat.completion.chunk", "choices": [choice]}


def usage_chunk(about: Document, translation: Translation) -> Document:
    return {**about, "object": "chat.completion.chunk", "choices": [], "usage": _usage(translation)}


def response(about: Document, translation: Translation | None) -> Document:
    """Return a response; without a translation, one that is in progress."""
    is_whole = translation is not None and translation.finish_reason is FinishReason.STOP
    status = "in_progress" if translation is None else "completed" if is_whole else "incomplete"
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        **about,
        "id": f"resp_{about['id']}",
        "object": "response",
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "output": [_item(about, status, _part(translation.text))] if translation else [],
        "parallel_tool_calls": False,
        "tool_choice": "none",
        "tools": [],
        "usage": {**_usage(translation, "input_tokens", "output_tokens"), **details} if translation else None,
    }


def events_before(about: Document) -> Sequence[Document]:
    begun = response(about, None)
    return (
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": _item(about, "in_progress")},
        {"type": "response.content_part.added", **_place(about), "part": _part("")},
    )


def delta_event(about: Document, delta: str) -> Document:
    return {"type": "response.output_text.delta", **_place(about), "delta": delta, "logprobs": []}


def events_after(about: Document, translation: Translation) -> Sequence[Document]:
    whole = response(about, translation)
    [item] = whole["output"]
    return (
        {"type": "response.output_text.done", **_place(about), "text": translation.text, "logprobs": []},
        {"type": "response.content_part.done", **_place(about), "part": item["content"][0]},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": f"response.{whole['status']}", "response": whole},
    )


def _place(about: Document) -> Document:
    return {"item_id": f"msg_{about['id']}", "output_index": 0, "content_index": 0}


def _item(about: Document, status: str, *content: Document) -> Document:
    return {"id": f"msg_{about['id']}", "type": "message", "role": "assistant", "status": status, "content": content}


def _part(text: str) -> Document:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def model_entry(name: str) -> Document:
    return {"id": name, "object": "model", "created": 0, "owned_by": "dragoman"}


def models_document(names: Iterable[str]) -> Document:
    return {"object": "list", "data": [model_entry(name) for name in names]}


def _ended(reason: FinishReason | None) -> Document:
    return {"logprobs": None, "finish_reason": reason and ("stop" if reason is FinishReason.STOP else "length")}


def _usage(translation: Translation, read: str = "prompt_tokens", written: str = "completion_tokens") -> Document:
    num_read, num_written = translation.num_source_tokens, sum(each.num_tokens for each in translation.hypotheses)
    return {read: num_read, written: num_written, "total_tokens": num_read + num_written}


@dataclass(frozen=True, slots=True)
class NamedPair:
    """The pair that a caller means: `model` is empty unless one is chosen, `source` if it is to be detected."""

    model: str
    source: str
    target: str
    max_output_tokens: int


def pair_of(given: str, catalogue: Catalogue) -> NamedPair:
    """Return the pair that a name means; codes may be in any spelling, such as `eng_Latn-deu_Latn`.

    Raise `NotFound` unless a model has it, or two by way of a pivot language, or a served language is paired with
    itself.
    """
    name, _, pair = given.removeprefix(_OWNER).rpartition(":")
    found: list[tuple[int, NamedPair]] = []
    for each in catalogue.models:
        most = each.manifest.limits.max_output_tokens
        if name in ("", each.name):
            found += [
                (distance, NamedPair(name, "" if source == AUTO else source, target, most))
                for source, target in _splits(pair)
                if (distance := _distance(each, source, target)) is not None
            ]
    if not found:
        found = [(0, routed) for codes in _splits(pair) if (routed := _routed(catalogue, name, *codes)) is not None]
    if not found:
        advice = f"GET /v1/models lists pairs, such as {next(names_of(catalogue), 'en-de')}"
        problem = "model {given} is not served {where}"
        raise NotFound(problem, "model", given, advice=advice, given=given, where=catalogue.where)
    return min(found, key=lambda each: each[0])[1]


def names_of(catalogue: Catalogue) -> Iterator[str]:
    """Yield the names of all pairs; of a model with very many, `auto-de` for each target `de`."""
    known: set[str] = set()
    for model in catalogue.models:
        codes, pairs = model.pairs.any_to_any, list(model.pairs.listed)
        if len(codes) ** 2 > 1000:  # too many to be listed
            pairs += [(AUTO, target) for target in codes]
        else:
            pairs += [(source, target) for source in codes for target in codes if source != target]
        for source, target in pairs:
            pair = f"{source}-{target}"
            name = f"{model.name}:{pair}" if pair in known else pair
            if name not in known:  # else it is of another version of the model
                known.add(name)
                yield name
    yield from (f"{pair.source}-{pair.target}" for pair in catalogue.pivoted())


def _splits(pair: str) -> Iterator[tuple[str, str]]:
    parts = pair.split("-", 16)  # which codes have, too: zh-Hans-pt-BR
    return (("-".join(parts[:number]), "-".join(parts[number:])) for number in range(1, len(parts)))


def _distance(model: LoadedModel, source: str, target: str) -> int | None:
    """Return how far the codes of a model's pair are from these; `None` if it has no such pair."""
    if source == AUTO:
        return 0 if model.pairs.sources(target) else None
    found = model.pairs.find(source, target)
    return found.distance if found else None


def _routed(catalogue: Catalogue, name: str, source: str, target: str) -> NamedPair | None:
    """Return the pair if it is translated by way of a pivot language, or is one of a language with itself."""
    try:
        route = catalogue.resolve(name, "", source, target)
    except (InvalidRequest, NotFound):
        return None
    return NamedPair(name, source, target, route.writer.manifest.limits.max_output_tokens)
