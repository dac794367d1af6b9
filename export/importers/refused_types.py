"""Models of transformers that people bring and that can't be converted: what each is, and what to do instead."""

import re
from collections.abc import Mapping
from typing import Any

_INSTEAD = "OPUS-MT, NLLB-200, M2M100 and mBART-50 translate between the same languages"
_DENSE = "its dense relatives, such as facebook/nllb-200-3.3B, can be converted"

# Patterns of `model_type`. The first one counts.
_KINDS = (
    ("nllb[-_]moe", f"a mixture of experts, which the engine has no operators for; {_DENSE}"),
    ("switch_transformers|.*[-_]moe", "a mixture of experts, which the engine has no operators for"),
    ("seamless_m4t.*", "a model of speech and text, of which only parts translate texts; take NLLB-200 instead"),
    ("whisper.*|speech_to_text.*|speecht5|moonshine.*", "a model of speech, which does not read texts"),
    ("fsmt", f"a model whose texts are split by Moses and BPE rules that are not read here; {_INSTEAD}"),
    ("(bigbird_)?pegasus.*", "a summariser with a tokenizer of its own, not a translator; BART's can be converted"),
    ("(xlm-)?prophetnet", f"a model that predicts several tokens at once with attention of its own; {_INSTEAD}"),
    ("led|longt5|longformer.*|reformer", "a model with attention to parts of a text, which the engine does not have"),
)
# TranslateGemma and HY-MT are among these; most of them also say so by their class.
_DECODERS = re.compile(
    "(llama|gpt|gemma|qwen|mi[nsx]tral|ministral|phi|opt|bloom|falcon|xglm|hunyuan|hy_v|deepseek|cohere|olmo|glm|smollm|"
    "stablelm|granite|mpt|nemotron|kimi|minimax|seed_oss).*"
)


def refusal(document: Mapping[str, Any]) -> str | None:
    """Return why the model of a `config.json` can't be converted; `None` if it is of no kind that is known here."""
    model_type, classes = str(document.get("model_type"))[:60], document.get("architectures")
    known = next((what for pattern, what in _KINDS if re.fullmatch(pattern, model_type)), None)
    named = [str(name)[:60] for name in classes] if isinstance(classes, list) else []
    if known is None and (_DECODERS.fullmatch(model_type) or any(name.endswith("ForCausalLM") for name in named)):
        by_name = f" ({named[0]})" if named else ""
        known = f"a decoder without an encoder{by_name}; converted are models of both"
    return None if known is None else f"model_type is {model_type!r}, {known}"
