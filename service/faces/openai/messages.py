"""OpenAI's messages: what bodies and answers look like. Source: https://platform.openai.com/docs/api-reference/chat."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict

from service.domain.errors import InvalidRequest, Path, Unimplemented
from service.domain.translation import MAX_TEXTS, FinishReason, Translation
from service.faces.http.bounded import Anything, AtMost, Name

Document = dict[str, Any]

# What no translation has, and the values with which it is not asked for.
_UNSUPPORTED: tuple[tuple[str, Sequence[object]], ...] = (
    ("tools", (None, [])),
    ("functions", (None, [])),
    ("logprobs", (None, False)),
    ("response_format", (None, {"type": "text"})),
)


class ChatMessage(BaseModel):
    """One turn of a conversation."""

    role: Name
    content: Anything = None


class StreamOptions(BaseModel):
    """What to stream beside the text."""

    include_usage: bool | None = None


class ChatBody(BaseModel):
    """A call. Unknown fields are ignored, but for those of `_UNSUPPORTED`: most tune a model that chats."""

    model_config = ConfigDict(extra="allow")

    model: Name
    messages: Annotated[list[ChatMessage], AtMost(MAX_TEXTS)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None


def text_of(body: ChatBody) -> str:
    """Return the text to translate: the last message of the user.

    Raises:
        InvalidRequest: there is none.
        Unimplemented: the caller asks for what no translation has.
    """
    for name, harmless in _UNSUPPORTED:
        if (body.model_extra or {}).get(name) not in harmless:
            raise Unimplemented("{path} is not supported by this server", Path(name), advice="leave it out")
    for index in reversed(range(len(body.messages))):
        if body.messages[index].role == "user":
            return _text(body.messages[index].content, Path("messages", index, "content"))
    raise InvalidRequest("{path} has no message of role user", Path("messages"), advice="the last one is the text")


def _text(content: object, path: Path) -> str:
    if isinstance(content, str):
        return content
    parts = [each if isinstance(each, dict) else {} for each in content] if isinstance(content, list) else []
    texts = [each.get("text") if each.get("type") == "text" else None for each in parts]
    wrong = next((Path(*path, index) for index, each in enumerate(texts) if not isinstance(each, str)), None)
    if wrong or not texts:
        advice = 'give a string, or parts such as {"type": "text", "text": "Hello"}'
        raise InvalidRequest("{path} is no text", wrong or path, advice=advice)
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
    """Return the part of an answer that tells what was used."""
    return {**about, "object": "chat.completion.chunk", "choices": [], "usage": _usage(translation)}


def model_entry(name: str) -> Document:
    """Return a model's description."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "dragoman"}


def models_document(names: Iterable[str]) -> Document:
    """Return the list of models."""
    return {"object": "list", "data": [model_entry(name) for name in names]}


def _ended(reason: FinishReason | None) -> Document:
    return {"logprobs": None, "finish_reason": reason and ("stop" if reason is FinishReason.STOP else "length")}


def _usage(translation: Translation) -> Document:
    read, written = translation.num_source_tokens, sum(each.num_tokens for each in translation.hypotheses)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
