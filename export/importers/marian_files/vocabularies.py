"""The vocabularies of a folder of Marian's: SentencePiece models, or pieces and ids with such models beside them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path

from export.importers import stored_file
from export.importers.files import find, only
from export.importers.marian_files.yaml_file import parse_pieces
from export.importers.parts import read_part
from export.importers.sentencepiece_file import SentencePieceFacts, facts_of
from service.bundle.manifest_parts import TokenizerSpec
from service.text.vocabulary import marian_language

Patterns = tuple[str, ...]
# A vocabulary of each side, or one of both; the first that a folder has is read.
_SEPARATE: tuple[tuple[Patterns, Patterns], ...] = (
    (("srcvocab*.spm",), ("trgvocab*.spm",)),
    (("*src.vocab.yml", "*src.vocab"), ("*trg.vocab.yml", "*trg.vocab")),
)
_COMMON: tuple[Patterns, ...] = (
    ("vocab*.spm",),
    ("model*.spm",),
    ("*vocab.yml", "*vocab.yaml"),
    ("*vocab.json",),
    ("*.vocab",),
)
_EXPECTED = ("vocab*.spm", "*vocab.yml")
_SPLITTERS = ("source.spm", "target.spm")
_FILES = ("vocab.json", "target_vocab.json")
_EOS, _UNK = "</s>", "<unk>"


@dataclass(frozen=True, slots=True)
class Vocabularies:
    """Both sides' vocabularies, which may be one.

    `spec` is the manifest's entry without start token, `files` writes its files. `sizes` are numbers of tokens: the
    model's or, if not `is_exact`, at most. `target_prefixes` maps several target languages to ids of `>>xx<<`, which
    begin a source.
    """

    paths: tuple[Path, Path]
    spec: TokenizerSpec
    files: Mapping[str, Callable[[Path], None]]
    sizes: tuple[int, int]
    is_exact: bool
    target_prefixes: dict[str, int] = field(default_factory=dict)

    def misfits(self, sizes: tuple[int, int]) -> list[str]:
        return [
            f"it has {size} tokens, {path.name} has {given}"
            for path, given, size in zip(self.paths, self.sizes, sizes, strict=True)
            if given > size or (self.is_exact and given != size)
        ]


def read_vocabularies(directory: Path, named: Sequence[str], problems: list[str]) -> Vocabularies | None:
    """Read the vocabularies `named`, or else the usual ones; or return `None`, and add what is wrong to `problems`."""
    paths = _paths(directory, named, problems)
    if paths is None:
        return None
    kinds = {stored_file.plain_name(path).endswith(".spm") for path in paths}
    if len(kinds) > 1:
        names = " and ".join(path.name for path in paths)
        problems.append(f"{names} are vocabularies of different kinds; expected two SentencePiece models, or none")
        return None
    return (_of_sentencepiece if kinds.pop() else _of_pieces)(paths, problems)


def _paths(directory: Path, named: Sequence[str], problems: list[str]) -> tuple[Path, Path] | None:
    found = [path for name in named for path in find(directory, (escape(name),))[:1]]
    if found and len(found) == len(named) <= 2:
        return found[0], found[-1]
    sides: tuple[Patterns, ...]
    sides = next((each for each in _SEPARATE if all(find(directory, patterns) for patterns in each)), ())
    if not sides:
        sides = (next((each for each in _COMMON if find(directory, each)), _EXPECTED),)
    both = [only(find(directory, patterns), patterns, "vocabulary", problems) for patterns in sides]
    first, last = both[0], both[-1]
    return None if first is None or last is None else (first, last)


def _of_sentencepiece(paths: tuple[Path, Path], problems: list[str]) -> Vocabularies | None:
    models = {path: _model(path, problems) for path in dict.fromkeys(paths)}
    source, target = (models[path] for path in paths)
    if source is None or target is None:
        return None
    for path, (_, facts) in zip(paths, (source, target), strict=True):
        if facts.eos_id < 0 or facts.unk_id < 0:
            problems.append(f"{path.name} has no piece for the end of a sentence, or none for unknown text")
            return None
    names = [stored_file.plain_name(path) for path in paths]
    (source_data, source_facts), (target_data, target_facts) = source, target
    spec = TokenizerSpec(
        kind="sentencepiece",
        file=names[0],
        pad_id=target_facts.eos_id,
        eos_id=target_facts.eos_id,
        unk_id=target_facts.unk_id,
        decoder_start_id=target_facts.size,
        target_file="" if source is target else names[1],
        source_eos_id=source_facts.eos_id,
        reserved_symbols=source_facts.reserved_symbols,
    )
    files = {names[0]: _writes(source_data), names[1]: _writes(target_data)}
    return Vocabularies(paths, spec, files, (source_facts.size, target_facts.size), is_exact=True)


def _of_pieces(paths: tuple[Path, Path], problems: list[str]) -> Vocabularies | None:
    """Return vocabularies of pieces into which `source.spm` and `target.spm` split a text, as those of OPUS-MT."""
    found = {path: _pieces(path, problems) for path in dict.fromkeys(paths)}
    source, target = (found[path] for path in paths)
    splitters = [_splitter(paths[0].parent, name, problems) for name in _SPLITTERS]
    if source is None or target is None:
        return None
    special = {_EOS: target[_EOS], _UNK: target[_UNK]}
    if any(source[text] != index for text, index in special.items()):
        problems.append(f"{paths[0].name} and {paths[1].name} have different ids for {_EOS} or {_UNK}")
        return None
    is_common = source is target
    spec = TokenizerSpec(
        kind="marian",
        file=_SPLITTERS[0],
        pad_id=special[_EOS],
        eos_id=special[_EOS],
        unk_id=special[_UNK],
        decoder_start_id=max(target.values()) + 1,
        target_file=_SPLITTERS[1],
        vocabulary_file=_FILES[0],
        target_vocabulary_file="" if is_common else _FILES[1],
        special_tokens=special,
    )
    files = dict[str, Callable[[Path], None]]()
    for name, data in zip(_SPLITTERS, splitters, strict=True):
        if data is None:
            return None
        files[name] = _writes(data)
    for name, vocabulary in zip(_FILES, (source,) if is_common else (source, target), strict=False):
        files[name] = _writes(json.dumps(vocabulary, ensure_ascii=False).encode())
    return Vocabularies(
        paths,
        spec,
        files,
        sizes=(max(source.values()) + 1, max(target.values()) + 1),
        is_exact=False,
        target_prefixes={code: index for piece, index in source.items() if (code := marian_language(piece))},
    )


def _writes(data: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(data)

    return write


def _model(path: Path, problems: list[str]) -> tuple[bytes, SentencePieceFacts] | None:
    def read() -> tuple[bytes, SentencePieceFacts]:
        data = stored_file.read(path)
        return data, facts_of(data)

    return read_part(path.name, read, problems)


def _splitter(directory: Path, name: str, problems: list[str]) -> bytes | None:
    found = find(directory, (name,))
    if not found:
        problems.append(f"{name}, which splits texts into pieces, is missing; BPE without it is not supported")
        return None
    model = _model(found[0], problems)
    return None if model is None else model[0]


def _pieces(path: Path, problems: list[str]) -> dict[str, int] | None:
    vocabulary = read_part(
        path.name, lambda: parse_pieces(stored_file.plain_name(path), stored_file.read(path)), problems
    )
    missing = [] if vocabulary is None else [text for text in (_EOS, _UNK) if text not in vocabulary]
    if missing:
        problems.append(f"{path.name} lacks {' and '.join(missing)}")
        return None
    return vocabulary
