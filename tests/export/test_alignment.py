"""Judging and choosing alignments without labelled data, and detecting a wrong graph."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from export.alignment import AlignmentHeads, IdenticalPieces, Translated, identical_pieces, share_found
from export.alignment_choice import MIN_PIECES, ByLayer, choose_alignment, cross_attention, mean_of
from export.graphs.execution import AlignmentRun, GraphPair
from export.importers.imported import ImportedCheckpoint
from export.importers.native.importer import import_native
from export.trace import model_shape
from export.verification_sentences import alignment_sentences
from export.verify import VerificationError, translate, verify_alignment
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import LanguagePair
from service.text.tokenizers import Tokenizer, load_tokenizer

Parts = tuple[ImportedCheckpoint, AlignmentRun, AlignmentHeads, list[Translated], Tokenizer]


def attention_of(imported: ImportedCheckpoint, translated: list[Translated]) -> list[ByLayer]:
    return cross_attention(imported.model.config, imported.model.weights, translated)


@pytest.fixture
def parts(checkpoint: Path, exported: tuple[Path, Manifest]) -> Parts:
    directory, manifest = exported
    imported, graphs = import_native(checkpoint).in_float32(), manifest.graphs
    tokenizer = load_tokenizer(manifest.tokenizer, directory)
    pair = GraphPair(directory / graphs.encoder, directory / graphs.decoder_step, model_shape(imported))
    run = AlignmentRun(directory / graphs.alignment, pair)
    said = manifest.verification["alignment"]
    heads = AlignmentHeads(said["layer"], tuple(said["heads"]), said["reads"])
    translated = list(translate(imported, pair, list(alignment_sentences(imported, tokenizer))))
    return imported, run, heads, translated, tokenizer


def test_the_right_graph_passes(parts: Parts) -> None:
    imported, run, heads, translated, _ = parts
    assert len(translated) > 20
    assert verify_alignment(imported, run, heads, translated, attention_of(imported, translated)) < 1e-4


@pytest.mark.parametrize(
    "name",
    [
        "encoder.embedding.tokens.weight",
        "decoder.layers.0.self_attention.key.weight",
        "decoder.layers.{layer}.self_attention.value.weight",
        "decoder.layers.{layer}.cross_attention.query.weight",
        "decoder.layers.{layer}.cross_attention.key.weight",
        "encoder.layers.0.feed_forward.inner.weight",
    ],
)
def test_a_changed_weight_is_noticed(parts: Parts, name: str) -> None:
    imported, run, heads, translated, _ = parts
    imported.model.weights[name.format(layer=heads.layer)] *= 1.5
    with pytest.raises(VerificationError, match="alignment graph's attention is up to"):
        verify_alignment(imported, run, heads, translated, attention_of(imported, translated))


def test_other_heads_are_noticed(parts: Parts) -> None:
    imported, run, heads, translated, _ = parts
    others = [
        dataclasses.replace(heads, layer=1 - heads.layer),
        dataclasses.replace(heads, heads=tuple({0, 1, 2, 3} - {heads.heads[0]})),
        dataclasses.replace(heads, reads=not heads.reads),
    ]
    for other in others:
        with pytest.raises(VerificationError, match="alignment graph's attention is up to"):
            verify_alignment(imported, run, other, translated, attention_of(imported, translated))


def test_pieces_point_at_each_other_or_not() -> None:
    pieces = IdenticalPieces(((0, 2), (2, 1)), slice(1, 4))
    right = np.array([[0.9, 0.0, 0.8, 0.1, 0.9], [0.1, 0.1, 0.2, 0.3, 0.3], [0.9, 0.4, 0.1, 0.1, 0.1]])
    assert pieces.num_found(right) == 2  # positions outside the text do not count
    assert share_found([pieces, pieces], [right, right[::-1]]) == 0.5
    one_sided = right.copy()
    one_sided[1, 1] = 0.5  # the source piece attends more to another piece
    assert pieces.num_found(one_sided) == 1
    assert share_found([], []) == 0.0
    nothing = IdenticalPieces((), slice(1, 4))  # of an empty translation
    assert share_found([pieces, nothing], [right, right[:0]]) == 1.0


def test_identical_pieces_stand_once_on_both_sides(parts: Parts) -> None:
    imported, *_, tokenizer = parts
    text, symbols = "Hello! Hello? \ue000", imported.tokenizer.reserved_symbols
    assert symbols[0] == "\ue000"
    languages = LanguagePair("en", "de", source_prefix_ids=(7, 8))
    source = tuple(tokenizer.encode(text))
    target = tuple(tokenizer.encode("\ue000 Hello!"))
    translated = Translated(text, languages, (7, 8, *source, 2), target)
    found = identical_pieces(tokenizer, translated)
    assert found.source == slice(2, 2 + len(source))
    said = {
        (tokenizer.decode([target[at]]).strip(), tokenizer.decode([translated.source_ids[source_at]]).strip())
        for at, source_at in found.places
    }
    assert {("\ue000", "\ue000"), ("!", "!")} <= said
    assert all(ours == theirs for ours, theirs in said)
    assert not any("Hello" in ours for ours, _ in said)


def copies(imported: ImportedCheckpoint, tokenizer: Tokenizer) -> list[Translated]:
    """Return translations equal to their sources, so that there are many identical pieces."""
    sentences = alignment_sentences(imported, tokenizer)
    return [Translated(s.text or "", s.languages, s.source_ids, s.source_ids[:-1]) for s in sentences]


def test_the_best_heads_are_chosen(parts: Parts) -> None:
    """Compares them with many other choices."""
    imported, *_, tokenizer = parts
    translated = copies(imported, tokenizer)
    pieces = [identical_pieces(tokenizer, each) for each in translated]
    by_layer = attention_of(imported, translated)
    choice = choose_alignment(imported, tokenizer, translated, by_layer)
    assert choice.num_pieces == sum(len(each.places) for each in pieces) > MIN_PIECES
    assert choice.share_found == share_found(pieces, [mean_of(each, choice.heads) for each in by_layer])
    for layer in range(2):
        for reads in (False, True):
            for heads in [(0,), (1,), (2,), (3,), (0, 1, 2, 3)]:
                other = AlignmentHeads(layer, heads, reads)
                assert share_found(pieces, [mean_of(each, other) for each in by_layer]) <= choice.share_found


def test_without_anything_to_judge_by_all_heads_are_taken(parts: Parts) -> None:
    imported, *_, tokenizer = parts
    choice = choose_alignment(imported, tokenizer, [], [])
    assert choice.heads == AlignmentHeads(1, (0, 1, 2, 3))
    assert (choice.num_pieces, choice.share_found) == (0, 0.0)
    assert "too little" in choice.line()


def test_tokens_are_only_read_where_a_position_is_left(parts: Parts) -> None:
    """A model that uses its last position cannot read the token written there."""
    imported, *_, tokenizer = parts
    limits = dataclasses.replace(imported.limits, max_output_tokens=imported.model.config.max_target_positions)
    full = dataclasses.replace(imported, limits=limits)
    translated = copies(imported, tokenizer)
    assert not choose_alignment(full, tokenizer, translated, attention_of(full, translated)).heads.reads
