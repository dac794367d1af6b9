"""Tokenizers of models that number SentencePiece's pieces themselves: its model splits, their lists have the ids."""

import json
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path

from export.importers.imported import TokenizerFile
from export.importers.sentencepiece_file import pieces_of
from service.bundle.manifest_parts import TokenizerSpec

_LEAST_SHARE = 0.5  # of SentencePiece's pieces that are tokens
_FILLERS = ("<pad>", "<blank>", "<mask>")
Ids = Mapping[str, int]


def other_model(data: bytes, ids: Ids) -> str | None:
    """Return why SentencePiece's model is not the one of these tokens, or `None`; raise ValueError if it is none."""
    pieces = pieces_of(data)
    known = sum(piece in ids for piece in pieces)
    is_other = known < _LEAST_SHARE * len(pieces)
    return f"belongs to another model: {known} of its {len(pieces)} pieces are tokens" if is_other else None


def listed_pieces(
    models: tuple[bytes, bytes | None],
    ids: tuple[Ids, Ids],
    texts: Mapping[str, str],
    others: Collection[str],
    start_id: int,
    *,
    adds_source_eos: bool,
    pad_id: int | None = None,
) -> tuple[TokenizerSpec, dict[str, TokenizerFile]]:
    """Return the manifest's entry, and writers of its files by name.

    `models` and `ids` are the source's and the target's, or both one model. `texts` are the target's "eos" and "unk",
    `others` further tokens that no text has.
    """
    (first, second), (source, target) = models, ids
    written = {"source.spm": first, "vocab.json": _listing(source)}
    if second is not None:
        written["target.spm"] = second
    if source != target:
        written["target_vocab.json"] = _listing(target)
    special = {*texts.values(), *_FILLERS, *others}
    spec = TokenizerSpec(
        kind="marian",
        file="source.spm",
        pad_id=target[texts["eos"]] if pad_id is None else pad_id,
        eos_id=target[texts["eos"]],
        unk_id=target[texts["unk"]],
        decoder_start_id=start_id,
        target_file="" if second is None else "target.spm",
        vocabulary_file="vocab.json",
        target_vocabulary_file="" if source == target else "target_vocab.json",
        source_eos_id=None if source == target else source.get(texts["eos"]),
        source_unk_id=None if source == target else source[texts["unk"]],
        adds_source_eos=adds_source_eos,
        special_tokens={token: target[token] for token in sorted(special) if token in target},
    )
    return spec, {name: partial(_write, data) for name, data in written.items()}


def _listing(ids: Ids) -> bytes:
    return json.dumps(ids, ensure_ascii=False).encode()


def _write(data: bytes, path: Path) -> None:
    path.write_bytes(data)
