"""Compares with another implementation of the same model: the engine on a bundle, or the model as it was read."""

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from export.architecture.streamed import StreamedTransformer
from export.command_group import how_to_install
from export.engine_decode import ONE_LANE, open_engine
from export.importers.imported import ImportedCheckpoint, Row
from export.stages import Stages
from export.verification_sentences import Sentence
from export.verify import (
    TIE_GAP,
    Floats,
    VerificationError,
    first_difference,
    logits_along,
    normalized_logits,
    top_two_gap,
)
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import GenerationDefaults
from service.domain.errors import counted
from service.domain.options import DecodingOptions
from service.engine.search import normalized

BEAM_SIZE = 4
_BATCH_SIZE = 16  # of up to 100 positions with logits of the whole vocabulary
# The original in float32: bytes per weight, and of torch and what it computes, as measured with 236 and 615 M weights.
REFERENCE_BYTES, REFERENCE_LIBRARIES = 4, 0.8e9
_LEAST_PENALTY = 1e-30  # lower ones would make scores infinite


_Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReferenceOutputs:
    """Outputs of a reference for some sentences; `greedy` and `beams`, if it was asked for them, are in their order."""

    name: str
    sentences: tuple[Sentence, ...]
    greedy: tuple[tuple[int, ...], ...]
    beams: tuple[tuple[int, ...], ...]
    max_output_tokens: int
    options: Mapping[str, float] = field(default_factory=dict)

    def generation(self, generation: GenerationDefaults) -> GenerationDefaults:
        return dataclasses.replace(generation, options={**generation.options, **self.options})


@dataclass(frozen=True, slots=True)
class FidelityReport:
    """Number of sentences with identical output, and of those that differ by a tie."""

    reference: str
    num_sentences: int
    num_greedy_ties: int
    num_beam_ties: int
    beam_size: int = BEAM_SIZE

    def line(self) -> str:
        beams = f", beam {self.beam_size} ({counted(self.num_beam_ties, 'tie')} excepted)" if self.beam_size > 1 else ""
        return (
            f"same tokens as {self.reference} in {counted(self.num_sentences, 'sentence')}: "
            f"greedy ({counted(self.num_greedy_ties, 'tie')} excepted){beams}"
        )


def ask_reference(
    checkpoint: ImportedCheckpoint, sentences: Sequence[Sentence], beam_sizes: Sequence[int] = (1, BEAM_SIZE)
) -> ReferenceOutputs | None:
    """Translate with the checkpoint's reference, greedily and maybe with beams; return `None` if it has none."""
    if checkpoint.open_reference is None:
        return None
    limit = max(sentence.max_output_tokens for sentence in sentences)
    rows = [Row(sentence.source_ids, sentence.languages.target_prefix_ids) for sentence in sentences]
    beam_sizes = beam_sizes if checkpoint.reference_searches else beam_sizes[:1]
    with checkpoint.open_reference() as reference:
        greedy, *beams = (tuple(reference.generate(rows, beam_size, limit)) for beam_size in beam_sizes)
        return ReferenceOutputs(reference.name, tuple(sentences), greedy, sum(beams, ()), limit, reference.options)


def ask_if_installed(
    checkpoint: ImportedCheckpoint,
    sentences: Sequence[Sentence],
    clock: Stages,
    beam_sizes: Sequence[int] = (1, BEAM_SIZE),
) -> ReferenceOutputs | None:
    """Do the same, and say so; or say what is missing for that, a package or memory, and return `None`."""
    needed, free = checkpoint.model.num_weights * REFERENCE_BYTES + REFERENCE_LIBRARIES, free_bytes()
    if checkpoint.open_reference is not None and needed > free:
        sizes = f"takes about {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free"
        clock.done(
            "refer",
            f"not compared with the original, which {sizes}; to compare it, convert on a machine with more memory",
        )
        return None
    try:
        expected = ask_reference(checkpoint, sentences, beam_sizes)
    except ModuleNotFoundError as error:
        package = error.name or ""
        advice = how_to_install(package) or f"pip install {package}"
        clock.done("refer", f"not compared with the original, as {package} is not installed; {advice}")
        return None
    if expected is not None:
        clock.done("refer", f"{expected.name} translated {counted(len(sentences), 'sentence')}")
    return expected


def verified_reading(checkpoint: ImportedCheckpoint, sentences: Sequence[Sentence], clock: Stages) -> dict[str, Any]:
    """Compare the model in float with its reference, for precisions that differ from it by themselves.

    Return what the manifest's `verification` says of it: nothing without a reference, which is freed before.
    """
    expected = ask_if_installed(checkpoint, sentences, clock, beam_sizes=[1])
    if expected is None:
        return {}
    report = check_reading(checkpoint, expected)
    clock.done("verify", f"in float, {report.line()}")
    return {"fidelity": dataclasses.asdict(report)}


def free_bytes(meminfo: Path = Path("/proc/meminfo")) -> float:
    """Return how much memory the machine has left, in bytes; infinite if unknown."""
    try:
        found = re.search(r"^MemAvailable: +(\d+) kB$", meminfo.read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        found = None
    return math.inf if found is None else 1024.0 * int(found[1])


def check_reading(checkpoint: ImportedCheckpoint, expected: ReferenceOutputs) -> FidelityReport:
    """Compare the reference's greedy outputs with those of the model as it was read, in float and in numpy.

    It reads each whole output at once: if its best token at every position is the next one, its search finds the same.
    """
    checkpoint = dataclasses.replace(checkpoint, generation=expected.generation(checkpoint.generation))
    model = StreamedTransformer(checkpoint.model.config, checkpoint.model.weights)
    spec, num_ties = checkpoint.tokenizer, 0
    outputs = [ids if len(ids) >= expected.max_output_tokens else (*ids, spec.eos_id) for ids in expected.greedy]
    for start in range(0, len(outputs), _BATCH_SIZE):
        batch = slice(start, start + _BATCH_SIZE)
        sentences, wanted = expected.sentences[batch], outputs[batch]
        starts = [(spec.decoder_start_id, *sentence.languages.target_prefix_ids) for sentence in sentences]
        read = [(*begin, *ids[:-1]) for begin, ids in zip(starts, wanted, strict=True)]
        hidden = model.hidden([sentence.source_ids for sentence in sentences], read)
        before = [row[len(ids) - len(out) : len(ids)] for row, ids, out in zip(hidden, read, wanted, strict=True)]
        logits = np.concatenate(list(model.logits(np.concatenate(before))), axis=1)  # (n, V)
        of_each = np.split(logits, np.cumsum([len(ids) for ids in wanted])[:-1])
        for sentence, ids, own in zip(sentences, wanted, of_each, strict=True):
            scores = _changed(checkpoint, sentence, own, [ids[:place] for place in range(len(ids))])
            scores[:, list(checkpoint.suppressed_ids)] = -np.inf
            num_ties += _check_best(sentence, scores, ids, expected.name)
    return FidelityReport(expected.name, len(outputs), num_ties, num_beam_ties=0, beam_size=1)


def _check_best(sentence: Sentence, scores: Floats, wanted: _Ids, reference: str) -> bool:
    """Check that `wanted` (T) are the best by scores (T, V) at every position; return whether some are by a tie."""
    best = scores.argmax(axis=1)
    gaps = scores.max(axis=1) - scores[np.arange(len(wanted)), list(wanted)]
    differing = np.flatnonzero(best != wanted)
    for position in differing[~(gaps[differing] < TIE_GAP)]:  # also if one is not a number
        raise VerificationError(
            f"{sentence}, position {position}: the model as it was read goes on with token {best[position]}, "
            f"{reference} with {wanted[position]}; the tokens before it are the same, and the two are "
            f"{gaps[position]:.2g} apart: a setting or a weight of the checkpoint is misread."
        )
    return len(differing) > 0


def check_fidelity(
    directory: Path, manifest: Manifest, expected: ReferenceOutputs, load: Callable[[], ImportedCheckpoint]
) -> FidelityReport:
    """Translate the same sentences with the engine, greedily and with beam search, and compare.

    `load` loads the checkpoint's model, which is needed only if outputs differ: it would take too much memory beside
    the engine.
    """
    rows = [(sentence.source_ids, sentence.languages.target_prefix_ids) for sentence in expected.sentences]
    limit, generation = expected.max_output_tokens, expected.generation(manifest.generation)
    wanted_of = {1: expected.greedy, BEAM_SIZE: expected.beams} if expected.beams else {1: expected.greedy}
    with open_engine(directory, manifest, max_slots=ONE_LANE) as engine:
        found = [
            [best.token_ids for best, *_ in engine.decode(rows, _options(generation, beam_size, limit))]
            for beam_size in wanted_of
        ]
    differing = [
        [each for each in zip(expected.sentences, given, wanted, strict=True) if each[1] != each[2]]
        for given, wanted in zip(found, wanted_of.values(), strict=True)
    ]
    checkpoint = dataclasses.replace(load(), generation=generation) if any(differing) else None
    for check, differences in zip((_check_greedy_tie, _check_beam_tie), differing, strict=False):
        for sentence, given, wanted in differences:
            assert checkpoint is not None
            check(checkpoint, sentence, given, wanted, expected)
    num_greedy_ties, num_beam_ties = len(differing[0]), sum(map(len, differing[1:]))
    return FidelityReport(expected.name, len(rows), num_greedy_ties, num_beam_ties, max(wanted_of))


def _options(generation: GenerationDefaults, beam_size: int, max_output_tokens: int) -> DecodingOptions:
    further: dict[str, Any] = {**generation.options}
    return DecodingOptions(
        beam_size=beam_size,
        length_penalty=generation.length_penalty,
        num_hypotheses=1,
        max_output_tokens=max_output_tokens,
        stops_early=generation.stops_early,
        narrows=generation.narrows,
        forces_end=generation.forces_end,
        **further,
    )


def _check_greedy_tie(
    checkpoint: ImportedCheckpoint, sentence: Sentence, given: _Ids, wanted: _Ids, expected: ReferenceOutputs
) -> None:
    position = first_difference(wanted, given)
    logits = logits_along(checkpoint, sentence, [*wanted[:position], 0])[position : position + 1]
    logits = _changed(checkpoint, sentence, logits, [wanted[:position]])[0]
    gap = top_two_gap(logits, checkpoint.suppressed_ids)
    if gap >= TIE_GAP:
        raise VerificationError(
            f"{sentence}, position {position}: the engine's greedy search goes on with "
            f"{given[position : position + 3]}, {expected.name} with {wanted[position : position + 3]}; "
            f"the tokens before it are the same, and the two best are {gap:.2g} apart."
        )


def _check_beam_tie(
    checkpoint: ImportedCheckpoint, sentence: Sentence, given: _Ids, wanted: _Ids, expected: ReferenceOutputs
) -> None:
    ours, theirs = (_score(checkpoint, sentence, ids, expected.max_output_tokens) for ids in (given, wanted))
    if abs(ours - theirs) >= TIE_GAP and closest_call(checkpoint, sentence, BEAM_SIZE, len(wanted)) >= TIE_GAP:
        position = first_difference(wanted, given)
        raise VerificationError(
            f"{sentence}, position {position}: the engine's beam search goes on with {given[position : position + 3]} "
            f"(score {ours:.6f} in the end), {expected.name} with {wanted[position : position + 3]} ({theirs:.6f}); "
            "the tokens before it are the same."
        )


def _score(checkpoint: ImportedCheckpoint, sentence: Sentence, ids: _Ids, max_output_tokens: int) -> float:
    """Return a hypothesis' normalised log-probability under the model; one shorter than the limit is taken as ended."""
    generation = checkpoint.generation
    is_cut = len(ids) >= max_output_tokens
    chosen = ids if is_cut else (*ids, checkpoint.tokenizer.eos_id)
    logits = logits_along(checkpoint, sentence, chosen)
    total = sum(
        float(_log_probs(checkpoint, sentence, logits[place : place + 1], [chosen[:place]])[0, token_id])
        for place, token_id in enumerate(chosen)
    )
    length = len(sentence.languages.target_prefix_ids) + len(chosen) + (is_cut and generation.forces_end)
    return normalized(total, length, generation.length_penalty)


def _log_probs(checkpoint: ImportedCheckpoint, sentence: Sentence, logits: Floats, outputs: Sequence[_Ids]) -> Floats:
    """Return log-probabilities (n, V) as beam search has them, of what follows outputs of equal lengths."""
    if not checkpoint.generation.options:
        return normalized_logits(checkpoint, logits)
    every = dataclasses.replace(checkpoint, renormalizes=False)
    log_probs = _changed(checkpoint, sentence, normalized_logits(every, logits), outputs)
    return normalized_logits(checkpoint, log_probs) if checkpoint.renormalizes else log_probs


def _changed(checkpoint: ImportedCheckpoint, sentence: Sentence, scores: Floats, outputs: Sequence[_Ids]) -> Floats:
    """Return scores (n, V) as the checkpoint's options change them after outputs of equal lengths."""
    start = (checkpoint.tokenizer.decoder_start_id, *sentence.languages.target_prefix_ids)
    options, eos_id = _options(checkpoint.generation, 1, 1), checkpoint.tokenizer.eos_id
    changed = [
        changed_scores(row, (*start, *ids), options, eos_id, len(start) - 1)
        for row, ids in zip(scores, outputs, strict=True)
    ]
    return np.stack(changed)


def closest_call(checkpoint: ImportedCheckpoint, sentence: Sentence, beam_size: int, max_output_tokens: int) -> float:
    """Return the smallest gap of summed log-probabilities that decided which beams survive, in the model's own search.

    Below the rounding error, another order of summation keeps another beam, and the search may end anywhere.
    """
    start = (checkpoint.tokenizer.decoder_start_id, *sentence.languages.target_prefix_ids)
    model = StreamedTransformer(checkpoint.model.config, checkpoint.model.weights)
    running: list[tuple[float, _Ids]] = [(0.0, ())]
    closest = math.inf
    for _ in range(max_output_tokens):
        hidden = model.hidden([sentence.source_ids] * len(running), [[*start, *ids] for _, ids in running])[:, -1]
        logits = np.concatenate(list(model.logits(hidden)), axis=1)
        log_probs = _log_probs(checkpoint, sentence, logits, [ids for _, ids in running])  # (k, V)
        log_probs[:, list(checkpoint.suppressed_ids)] = -np.inf
        token_ids = np.argpartition(-log_probs, 2 * beam_size, axis=1)[:, : 2 * beam_size]
        values = np.take_along_axis(log_probs, token_ids, axis=1)
        continued = [
            (total + value, (*ids, token_id))
            for (total, ids), row, chosen in zip(running, values.tolist(), token_ids.tolist(), strict=True)
            for value, token_id in zip(row, chosen, strict=True)
            if token_id != checkpoint.tokenizer.eos_id
        ]
        continued.sort(key=lambda item: -item[0])
        closest = min(closest, continued[beam_size - 1][0] - continued[beam_size][0])
        running = continued[:beam_size]
    return closest


def changed_scores(
    scores: Floats, inputs: Sequence[int], options: DecodingOptions, eos_id: int, num_forced: int
) -> Floats:
    """Return scores (V,) after `inputs` (start token, `num_forced` prefix tokens, output) as a request's options change
    them.

    Transformers' logits processors in their obvious form; `kernels/src/search/processors.cpp` is what serves.
    """
    changed = scores.copy()
    if options.repetition_penalty != 1.0:
        seen = sorted({token_id for token_id in inputs if token_id < len(scores)})
        penalty = max(options.repetition_penalty, _LEAST_PENALTY)
        changed[seen] = np.where(scores[seen] < 0, scores[seen] * penalty, scores[seen] / penalty)
    if size := options.no_repeat_ngram_size:
        begun = tuple(inputs[len(inputs) + 1 - size :]) if size > 1 else ()
        for start in range(len(inputs) + 1 - size):
            *before, last = inputs[start : start + size]
            if tuple(before) == begun and last < len(scores):
                changed[last] = -np.inf
    if len(inputs) - 1 - num_forced < options.min_output_tokens:
        changed[eos_id] = -np.inf
    return changed
