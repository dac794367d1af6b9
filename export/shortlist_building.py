"""Makes a shortlist from a bundle's own translations, by their alignments, or of a lexicon. Does not import torch."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import sentencepiece

from export.engine_decode import greedy_options, open_graphs
from export.shortlist import Shortlist
from export.stages import progress
from service.bundle.manifest import Manifest
from service.engine.generate import OfflineEngine, sequences_of
from service.engine.runtime.aligner import Aligner
from service.engine.sequence import Attention, DecodedHypothesis
from service.engine.sequence import Sequence as DecodedSequence
from service.text.tokenizers import load_tokenizer

_LINES_AT_ONCE = 1000
_PROBABILITY_UNITS = 10**6  # as counts are whole numbers


@dataclass(frozen=True, slots=True)
class Counts:
    """Frequencies with which source tokens became target tokens, and frequencies or probabilities of target tokens."""

    pairs: Counter[tuple[int, int]] = field(default_factory=Counter)
    targets: Counter[int] = field(default_factory=Counter)

    def shortlist(self, source_size: int, eos_id: int, first: int, best: int) -> Shortlist:
        """Return the `best` target tokens of each source token, and always the `first` most frequent and the end."""
        always = sorted({eos_id, *(token for token, _ in self.targets.most_common(first))})
        of_source: dict[int, list[tuple[int, int]]] = {}
        for (source, target), count in self.pairs.items():
            of_source.setdefault(source, []).append((-count, target))
        lists = [sorted(target for _, target in sorted(of_source.get(id_, ()))[:best]) for id_ in range(source_size)]
        offsets = np.cumsum([0, *map(len, lists)])
        ids = np.array([target for each in lists for target in each], np.int32)
        return Shortlist(np.array(always, np.int64), offsets.astype(np.int64), ids)


def count_translations(directory: Path, manifest: Manifest, lines: Sequence[str]) -> Counts:
    """Translate lines with a bundle, and count what it attends to: each target token comes from one source token."""
    if not manifest.graphs.alignment:
        raise ValueError("it returns no alignments, which shortlists are made from; convert its checkpoint again")
    tokenizer, pair = load_tokenizer(manifest.tokenizer, directory), manifest.first_pair
    longest, options, counts = manifest.limits.max_source_tokens, greedy_options(manifest), Counts()
    opened, config = open_graphs(directory, manifest)
    with OfflineEngine(opened.runners, config) as engine:
        for begin in progress(range(0, len(lines), _LINES_AT_ONCE), "texts"):
            texts = lines[begin : begin + _LINES_AT_ONCE]
            sources = [manifest.source_ids(tokenizer.encode(text), pair) for text in texts]
            sequences = [
                dataclasses.replace(sequence, wants_attention=True)
                for source in sources
                if 1 < len(source) <= longest
                for sequence in sequences_of([(source, pair.target_prefix_ids)], options)
            ]
            found = [best for best, *_ in engine.generate(sequences)]
            attention = _attention(opened.aligner, sequences, found)
            for sequence, best, own in zip(sequences, found, attention, strict=True):
                counts.targets.update(best.token_ids)
                if own is not None and best.token_ids:
                    places = own.argmax(axis=1)[-len(best.token_ids) :].tolist()
                    sources_of = (sequence.source_ids[place] for place in places)
                    counts.pairs.update(zip(sources_of, best.token_ids, strict=True))
    return counts


def _attention(
    aligner: Aligner | None, sequences: Sequence[DecodedSequence], found: Sequence[DecodedHypothesis]
) -> Sequence[Attention | None]:
    """Return the attention (T, S) of translations, prefix included: what `aligner` tells, or the decoder recorded."""
    if aligner is None:
        return [best.attention for best in found]
    pairs = zip(sequences, found, strict=True)
    return aligner.align([(each.source_ids, (*each.target_prefix_ids, *best.token_ids)) for each, best in pairs])


def read_lexicon(path: Path, directory: Path, manifest: Manifest) -> Counts:
    """Read Marian's `lex.s2t`: lines of a target piece, a source piece, and the probability of that given this one."""
    spec = manifest.tokenizer
    if spec.kind != "sentencepiece":
        raise ValueError(f"its tokenizer is of kind {spec.kind}; a lexicon's pieces are those of SentencePiece models")
    source, target = (
        sentencepiece.SentencePieceProcessor(model_file=str(directory / name))
        for name in (spec.file, spec.target_file or spec.file)
    )
    counts = Counts()
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if not line:
            continue
        try:
            target_piece, source_piece, probability = line.split()
            weight = round(float(probability) * _PROBABILITY_UNITS)
        except ValueError:
            raise ValueError(f"{path.name}, line {number}: expected a target piece, a source piece, a number") from None
        ids = source.piece_to_id(source_piece), target.piece_to_id(target_piece)
        if weight > 0 and source.unk_id() != ids[0] and target.unk_id() != ids[1]:
            counts.pairs[ids] += weight
            counts.targets[ids[1]] += weight
    if not counts.pairs:
        raise ValueError(f"{path.name} has no pieces of this bundle")
    return counts
