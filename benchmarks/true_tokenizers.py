"""Tokenizer files of published sizes: pieces learnt from the shipped sentences, and pairs of them to fill up."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.workload import SENTENCES

SHIPPED_MODEL = Path("checkpoints/en-de/tokenizer.model")
SEED = 20261126
LEARNT_PIECES = 8000
RARE = -20.0  # score of a filling piece: its parts are likelier
NLLB_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
NLLB_MADE_UP = 2  # rows of NLLB's tables without a token


def write_marian_tokenizer(directory: Path, size: int) -> None:
    """Write the files of an OPUS-MT checkpoint, English to German, with one vocabulary of `size` pieces."""
    import sentencepiece

    shipped = sentencepiece.SentencePieceProcessor(model_file=str(SHIPPED_MODEL))
    known = [shipped.id_to_piece(index) for index in range(len(NLLB_SPECIAL), shipped.get_piece_size())]
    filling = [piece for _, _, piece in _pairs(known, size - 3 - len(known))]
    pieces = ["</s>", "<unk>", *known[: size - 3], *filling, "<pad>"]
    # A message of Protocol Buffers that follows another adds to its lists: here, to ModelProto's pieces.
    model = SHIPPED_MODEL.read_bytes() + b"".join(map(_piece_field, filling))
    for name in ("source.spm", "target.spm"):
        (directory / name).write_bytes(model)
    _write_json(directory / "vocab.json", {piece: index for index, piece in enumerate(pieces)})
    _write_json(directory / "tokenizer_config.json", {"source_lang": "en", "target_lang": "de"})


def write_nllb_tokenizer(directory: Path, size: int) -> None:
    """Write the `tokenizer.json` of an NLLB checkpoint with tables of `size` rows: BPE, then languages and "<mask>"."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES

    added = [*FAIRSEQ_LANGUAGE_CODES, "<mask>"]
    room = size - len(added) - NLLB_MADE_UP
    learnt = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    learnt.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=min(room, LEARNT_PIECES), special_tokens=list(NLLB_SPECIAL), show_progress=False
    )
    learnt.train_from_iterator(SENTENCES.read_text(encoding="utf-8").splitlines(), trainer)
    document = json.loads(learnt.to_str())["model"]
    known = [piece for piece in document["vocab"] if piece not in NLLB_SPECIAL]
    pairs = list(_pairs(known, room - len(document["vocab"])))
    pieces = [*document["vocab"], *(piece for _, _, piece in pairs)]
    merges = [*(tuple(merge) for merge in document["merges"]), *((left, right) for left, right, _ in pairs)]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, unk_token="<unk>", fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens([*NLLB_SPECIAL, *added])
    tokenizer.save(str(directory / "tokenizer.json"))
    _write_json(directory / "tokenizer_config.json", {"tokenizer_class": "NllbTokenizer"})


def write_madlad_tokenizer(directory: Path, size: int) -> None:
    """Write the `tokenizer.json` of MADLAD-400: unigram pieces after three special ones, languages and bytes."""
    import sentencepiece
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES

    from service.text.languages import canonical

    shipped = sentencepiece.SentencePieceProcessor(model_file=str(SHIPPED_MODEL))
    pieces = [(shipped.id_to_piece(index), shipped.get_score(index)) for index in range(shipped.get_piece_size())]
    learnt = [(piece, score) for piece, score in pieces if score < 0.0]
    languages = dict.fromkeys(f"<2{canonical(code)}>" for code in FAIRSEQ_LANGUAGE_CODES)
    first = ["<unk>", "<s>", "</s>", *languages, *(f"<0x{byte:02X}>" for byte in range(256))]
    known = [piece for piece, _ in learnt]
    filling = [(piece, RARE) for _, _, piece in _pairs(known, size - len(first) - len(learnt))]
    vocabulary = [*((piece, 0.0) for piece in first), *learnt, *filling]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=0, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.save(str(directory / "tokenizer.json"))
    named = {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<s>", "extra_ids": 0}
    _write_json(directory / "tokenizer_config.json", {"tokenizer_class": "T5Tokenizer", **named})


def _pairs(known: Sequence[str], count: int) -> Iterator[tuple[str, str, str]]:
    """Yield `count` pairs of known pieces that make new ones, and these; the same ones every time."""
    rng = np.random.default_rng(SEED)
    rights = [piece for piece in known if not piece.startswith("▁")]
    seen = set(known)
    while count > 0:
        left = known[int(rng.integers(len(known)))]
        right = rights[int(rng.integers(len(rights)))]
        if left + right not in seen:
            seen.add(left + right)
            count -= 1
            yield left, right, left + right


def _piece_field(piece: str) -> bytes:
    """Return a field of ModelProto: a SentencePiece (field 1) with a piece (1) and a score (2)."""
    text = piece.encode()
    body = b"\x0a" + _varint(len(text)) + text + b"\x15" + np.float32(RARE).tobytes()
    return b"\x0a" + _varint(len(body)) + body


def _varint(number: int) -> bytes:
    groups = []
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*groups, number])


def _write_json(path: Path, document: dict[str, object]) -> None:
    path.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
