"""All that reads bytes of strangers, by name. Each target raises nothing but for what is wrong with the code."""

from pathlib import Path

from tests.fuzz import planted, text_targets, tokenizer_targets
from tests.fuzz.bounded import Target
from tests.fuzz.models import TOKENIZERS

CORPUS = Path(__file__).with_name("corpus")

TARGETS: dict[str, Target] = {
    "markup": text_targets.markup,
    "sentences": text_targets.sentences,
    "long-segments": text_targets.long_segments,
    "placeholders": text_targets.placeholders,
    "terms": text_targets.terms,
    "protection": text_targets.protection,
    "words": text_targets.words_of,
    "detection": text_targets.detection,
    "languages": text_targets.languages,
    "documents": text_targets.documents,
    **{f"{name}-encoding": tokenizer_targets.encoding(name) for name in TOKENIZERS},
    **{f"{name}-decoding": tokenizer_targets.decoding(name) for name in TOKENIZERS},
}
PLANTED: dict[str, Target] = {"planted": planted.planted, "planted-slow": planted.planted_slow}
