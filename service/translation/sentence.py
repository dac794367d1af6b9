"""The short way of a plain sentence: one segment, one sequence, and nothing to protect, restore or assemble.

Most calls have one text that is one sentence of words. What the general way (`call.py`, `planning.py`, `restoring.py`,
`assembling.py`) would do with it is known beforehand: so it is tokenized, decoded and answered in one pass, which takes
a fraction of the time. Whatever looks different goes the general way; a test compares both.
"""

import time

from service.bundle.manifest_parts import LanguagePair
from service.domain.call import Call, Phase
from service.domain.translation import (
    CallLimits,
    Flag,
    Hypothesis,
    MimeType,
    SplitSentences,
    Translation,
    TranslationRequest,
)
from service.engine.sequence import DecodedHypothesis, Sequence
from service.models.loaded_model import LoadedModel
from service.text.forms import has_invisible
from service.text.identifiers import may_carry
from service.text.placeholders import find_placeholders
from service.text.sentences import is_simple_sentence, pieces
from service.translation.answer_size import AnswerSize
from service.translation.assembling import whole_translation
from service.translation.computations import MAX_INLINE_TOKENS, Computations
from service.translation.decoding import SegmentDecoder
from service.translation.planning import MAX_SIMPLE_CHARACTERS, whole_source_ids


def may_be_plain_sentence(request: TranslationRequest) -> bool:
    """Return whether a request has one plain and short text, and needs nothing but its translation."""
    texts = request.texts
    return (
        len(texts) == 1
        and 0 < len(texts[0]) <= MAX_SIMPLE_CHARACTERS
        and bool(request.source_language_code)
        and request.mime_type is MimeType.PLAIN
        and not (
            request.preserve_formatting
            or request.return_alignments
            or request.terms
            or request.placeholders
            or request.glossary
            or request.target_prefixes
            or request.labels
        )
    )


def is_plain_sentence(text: str, language_code: str, mode: SplitSentences) -> bool:
    """Return whether a short text is one segment as a whole, on one line, with letters and nothing to protect."""
    if is_simple_sentence(text):
        return True
    if len(text.splitlines()) > 1 or has_invisible(text) or find_placeholders(text):
        return False
    first = next(pieces(text, language_code, mode))
    return first.is_segment and len(first.text) == len(text)


class SentenceTranslator:
    """Translates plain sentences. All methods belong to the event loop's thread."""

    def __init__(self, decoder: SegmentDecoder, computations: Computations, limits: CallLimits) -> None:
        self._decoder = decoder
        self._computations = computations
        self._limits = limits

    def sequence(
        self, request: TranslationRequest, model: LoadedModel, pair: LanguagePair, call: Call
    ) -> Sequence | None:
        """Return the sequence of a plain sentence; `None` if it must go the general way.

        Raises:
            InvalidRequest: an option is out of range.
        """
        options = model.options(request.options)
        if options.is_sampled or options.num_hypotheses > 1 or options.seed is not None:
            return None
        [text] = request.texts
        limits = model.manifest.limits
        if len(text) > self._limits.max_characters or limits.max_output_tokens > MAX_INLINE_TOKENS:
            return None
        began = time.monotonic()
        if options.check_numbers and may_carry(text):
            return None
        if not is_plain_sentence(text, pair.source_language_code, request.split_sentences):
            return None
        source_ids = whole_source_ids(text, model.tokenizer, model.unknown, model.manifest, pair)
        if not source_ids:
            return None
        self._computations.note(Phase.TOKENIZE, model, began, call)
        return Sequence(
            source_ids=source_ids,
            options=options,
            arrived_seconds=time.monotonic(),
            target_prefix_ids=pair.target_prefix_ids,
            deadline_seconds=request.deadline_seconds,
            priority=request.priority,
            call=call,
        )

    async def translate(self, text: str, sequence: Sequence, model: LoadedModel) -> Translation:
        """Return the answer to a sentence with this sequence.

        Cancelling this coroutine aborts the sequence in the engine.

        Raises:
            ServiceError: the engine rejected it or failed, or the answer would be too long.
        """
        decoded = await self._decoder.decode_one(model, sequence)
        began = time.monotonic()
        translation = self._translation(text, sequence, decoded, model)
        self._computations.note(Phase.DETOKENIZE, model, began, sequence.call)
        return translation

    def _translation(
        self, source: str, sequence: Sequence, decoded: DecodedHypothesis, model: LoadedModel
    ) -> Translation:
        text = model.tokenizer.decode(decoded.token_ids)
        AnswerSize(self._limits.max_answer_characters).add(len(text), 1)
        score = decoded.score if sequence.options.return_scores else None
        flags = () if any(map(str.isalnum, text)) else (Flag.EMPTY,)
        chosen = Hypothesis(text, score, len(decoded.token_ids), decoded.finish_reason, flags)
        return whole_translation(len(source), len(sequence.source_ids), chosen)
