"""An engine that answers when the test decides, with the letters of the source in reverse; a translator over it."""

import asyncio
from collections.abc import Sequence as Sequence_
from pathlib import Path
from typing import Any, cast

from service.bundle.manifest import Manifest
from service.domain.call import Origin
from service.domain.errors import Overloaded, ServiceError
from service.domain.translation import CallLimits, FinishReason, Priority
from service.engine.engine import Engine
from service.engine.sequence import DecodedHypothesis, Sequence, SequenceUpdate
from service.models.catalogue import Catalogue
from service.models.language_pairs import LanguagePairs
from service.models.loaded_model import LoadedModel
from service.models.repository import FoundBundle
from service.observe.metrics import Metrics
from service.text.glossary import Glossaries
from service.text.tokenizers import Tokenizer
from service.translation.cache import TranslationCache
from service.translation.translator import Translator
from tests.unit.translation.letters import PAIR


class ScriptedEngine:
    """Keeps its requests until the test decides how they end."""

    can_change_scores = True

    def __init__(self) -> None:
        self.submitted: list[Sequence] = []
        self.aborted: list[Sequence] = []
        self.refusal: ServiceError | None = None
        self.is_full = False
        self.arrived = asyncio.Event()

    def submit(self, sequences: list[Sequence]) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.submitted += sequences
        self.arrived.set()

    def check_queue(self, priority: Priority, origin: Origin) -> None:
        if self.is_full:
            raise Overloaded("full", 1.0)

    def check_alike(self, sequences: list[Sequence]) -> float:
        if self.refusal is not None:
            raise self.refusal
        return 0.0

    def abort(self, sequences: list[Sequence]) -> None:
        self.aborted += sequences


def answer(sequence: Sequence, score: float = -0.5) -> SequenceUpdate:
    """Return the engine's answer: the source's letters in reverse."""
    letters = sequence.source_ids[len(PAIR.source_prefix_ids) : -1]
    hypothesis = DecodedHypothesis(tuple(reversed(letters)), score, FinishReason.STOP)
    return SequenceUpdate(sequence, FinishReason.STOP, (hypothesis,))


def model_of(manifest: Manifest, tokenizer: Tokenizer, engine: Any, **changes: Any) -> LoadedModel:
    bundle = FoundBundle(Path(), "1", manifest, frozenset())
    return LoadedModel(bundle, tokenizer, cast(Engine, engine), LanguagePairs(manifest), **changes)


def translator_of(
    models: Sequence_[LoadedModel],
    limits: CallLimits,
    *,
    cache_bytes: int = 0,
    metrics: Metrics | None = None,
    pivots: Sequence_[str] = (),
) -> Translator:
    translator = Translator(metrics or Metrics(), TranslationCache(cache_bytes), Glossaries(), limits)
    translator.serve(Catalogue(models, pivots))
    return translator
