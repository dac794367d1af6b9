"""Holds what the service's engine makes of a bundle against another implementation of the same model."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from export.engine_decode import EngineDecoder
from export.importers.imported import ImportedCheckpoint, Output, Row
from export.verification_sentences import Sentence
from export.verify import TIE_GAP, VerificationError, first_difference, logits_along, top_two_gap
from service.bundle.manifest import Manifest
from service.translation import DecodingOptions

BEAM_SIZE = 4
ENGINE_SLOTS = 16  # one lane: a second one would hold the weights once more


@dataclass(frozen=True, slots=True)
class ReferenceOutputs:
    """What a reference made of some sentences; `greedy` and `beams` are in their order."""

    name: str
    sentences: tuple[Sentence, ...]
    greedy: tuple[Output, ...]
    beams: tuple[Output, ...]
    max_output_tokens: int


@dataclass(frozen=True, slots=True)
class FidelityReport:
    """How many sentences came out the same, and how many differ by a tie."""

    reference: str
    num_sentences: int
    num_greedy_ties: int
    num_beam_ties: int
    beam_size: int = BEAM_SIZE

    def line(self) -> str:
        """A short text for the terminal."""
        return (
            f"same tokens as {self.reference} in {self.num_sentences} sentences: greedy ({self.num_greedy_ties} ties "
            f"excepted), beam {self.beam_size} ({self.num_beam_ties} ties excepted)"
        )


def ask_reference(checkpoint: ImportedCheckpoint, sentences: Sequence[Sentence]) -> ReferenceOutputs | None:
    """Have the checkpoint's reference translate; `None` where it has none."""
    if checkpoint.open_reference is None:
        return None
    limit = max(sentence.max_output_tokens for sentence in sentences)
    rows = [Row(sentence.source_ids, sentence.languages.target_prefix_ids) for sentence in sentences]
    with checkpoint.open_reference() as reference:
        greedy, beams = (tuple(reference.generate(rows, beam_size, limit)) for beam_size in (1, BEAM_SIZE))
        return ReferenceOutputs(reference.name, tuple(sentences), greedy, beams, limit)


def check_fidelity(
    checkpoint: ImportedCheckpoint, directory: Path, manifest: Manifest, expected: ReferenceOutputs
) -> FidelityReport:
    """Translate the same sentences with the engine, greedily and with beams.

    Raises:
        VerificationError: an output differs although it is no tie; names the first differing position.
    """
    rows = [(sentence.source_ids, sentence.languages.target_prefix_ids) for sentence in expected.sentences]
    with EngineDecoder(directory, manifest, max_slots=ENGINE_SLOTS) as decoder:
        greedy, beams = (
            [
                Output(best.token_ids, best.score)
                for best, *_ in decoder.decode(rows, _options(manifest, beam_size, expected.max_output_tokens))
            ]
            for beam_size in (1, BEAM_SIZE)
        )
    num_greedy_ties = num_beam_ties = 0
    for sentence, given, wanted in zip(expected.sentences, greedy, expected.greedy, strict=True):
        if given.token_ids != wanted.token_ids:
            _check_greedy_tie(checkpoint, sentence, given, wanted, expected.name)
            num_greedy_ties += 1
    for sentence, given, wanted in zip(expected.sentences, beams, expected.beams, strict=True):
        if given.token_ids != wanted.token_ids:
            _check_beam_tie(sentence, given, wanted, expected.name)
            num_beam_ties += 1
    return FidelityReport(expected.name, len(rows), num_greedy_ties, num_beam_ties)


def _options(manifest: Manifest, beam_size: int, max_output_tokens: int) -> DecodingOptions:
    generation = manifest.generation
    return DecodingOptions(
        beam_size=beam_size,
        length_penalty=generation.length_penalty,
        num_hypotheses=1,
        max_output_tokens=max_output_tokens,
        return_scores=True,
        stops_early=generation.stops_early,
        forces_end=generation.forces_end,
    )


def _check_greedy_tie(
    checkpoint: ImportedCheckpoint, sentence: Sentence, given: Output, wanted: Output, reference: str
) -> None:
    position = first_difference(wanted.token_ids, given.token_ids)
    logits = logits_along(checkpoint, sentence, [*wanted.token_ids[:position], 0])[position]
    gap = top_two_gap(logits.numpy(), checkpoint.suppressed_ids)
    if gap >= TIE_GAP:
        raise VerificationError(
            f"{sentence}, position {position}: the engine's greedy search goes on with "
            f"{given.token_ids[position : position + 3]}, {reference} with "
            f"{wanted.token_ids[position : position + 3]}; "
            f"the tokens before it are the same, and the two best are {gap:.2g} apart."
        )


def _check_beam_tie(sentence: Sentence, given: Output, wanted: Output, reference: str) -> None:
    assert given.score is not None
    assert wanted.score is not None
    if abs(given.score - wanted.score) >= TIE_GAP:
        position = first_difference(wanted.token_ids, given.token_ids)
        raise VerificationError(
            f"{sentence}, position {position}: the engine's beam search goes on with "
            f"{given.token_ids[position : position + 3]} (score {given.score:.6f} in the end), {reference} with "
            f"{wanted.token_ids[position : position + 3]} ({wanted.score:.6f}); the tokens before it are the same."
        )
