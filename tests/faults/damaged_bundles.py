"""Bundles damaged in every way that we know, as data: the change to a bundle, and its permitted outcomes."""

import functools
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from service.bundle.checksums import file_sha256

MANIFEST = "manifest.json"
Inflict = Callable[[Path], object]


class Damage(NamedTuple):
    """A change to a bundle, and what its rejection must say; what `may_load` may do no harm."""

    name: str
    inflict: Inflict
    says: str = ""
    may_load: bool = False


def to_files(files: list[str], seed: int, num_flips: int) -> Iterator[Damage]:
    """Generate damage to files that leaves the checksums unchanged."""
    rng = random.Random(seed)
    for file in files:
        for _ in range(num_flips):
            change = _rewritten(file, functools.partial(_flipped, place=rng.random(), bit=rng.randrange(8)))
            yield Damage(f"{file}: a bit flipped", change, may_load=file == MANIFEST)
        for share in (0.0, 0.01, 0.5, 0.999):
            yield Damage(f"{file}: cut to {share:g}", _rewritten(file, functools.partial(_cut, share=share)))
        noise = random.Random(rng.randrange(2**32))
        random_bytes = _rewritten(file, lambda data, noise=noise: noise.randbytes(len(data)))  # type: ignore[misc]
        yield Damage(f"{file}: random bytes", random_bytes)
        yield Damage(f"{file}: another file", _swapped(file, files[files.index(file) - 1]))
        yield Damage(f"{file}: gone", _replaced(file, lambda path: None))
        yield Damage(f"{file}: a folder", _replaced(file, Path.mkdir))
        yield Damage(f"{file}: a pipe", _replaced(file, os.mkfifo))
        for target in ("/dev/zero", "/dev/null", "/dev/tty", "/proc/self/mem", "/nowhere", "/etc/passwd", file):
            yield Damage(f"{file}: a link to {target}", _replaced(file, functools.partial(os.symlink, target)))


def with_right_checksums(files: list[str], seed: int, number: int) -> Iterator[Damage]:
    """Generate damage to files with corrected checksums, so that it reaches the code that opens them."""
    rng = random.Random(seed)
    for _ in range(number):
        file, state = rng.choice(files), rng.randrange(2**32)
        change = _rewritten(file, functools.partial(mutated, seed=state))
        yield Damage(f"{file}: mutated by {state}, checksums right", resealed(change), may_load=True)


def to_manifests() -> Iterator[Damage]:
    """Generate malicious manifests."""
    sizes = (0, -1, 3, 10**6, 10**7, 10**9, 2**31, 2**63, 2**64, 10**400)
    numbers = {
        **dict.fromkeys(("model.num_decoder_layers", "model.num_heads", "model.head_size"), False),
        **dict.fromkeys(("model.vocabulary_size", "limits.max_source_tokens", "limits.max_output_tokens"), True),
        **dict.fromkeys(("tokenizer.pad_id", "tokenizer.eos_id", "tokenizer.unk_id", "tokenizer.source_unk_id"), True),
        **dict.fromkeys(("tokenizer.decoder_start_id", "tokenizer.source_eos_id", "graphs.alignment_layer"), True),
        **dict.fromkeys(("generation.beam_size", "generation.num_hypotheses", "generation.length_penalty"), True),
        **dict.fromkeys(("golden.0.source_ids.0", "golden.0.output_ids.0"), True),
    }
    for field, may_load in numbers.items():
        for size in sizes:
            shown = f"{size:.3g}" if size < 10**300 else "huge"
            yield Damage(f"{field} is {shown}", set_fields({field: size}), may_load=may_load)
    for value in (float("nan"), float("inf")):
        yield Damage(f"length_penalty is {value}", set_fields({"generation.length_penalty": value}))
    files = ("graphs.encoder", "graphs.decoder_step", "graphs.alignment", "tokenizer.file", "tokenizer.target_file")
    paths = ("../../etc/passwd", "/etc/passwd", "a\0b", "..\\x", "a\nb", "\ud800", "x" * 5000, "encoder.onnx/..", ".")
    for field in (*files, "tokenizer.vocabulary_file", "tokenizer.target_vocabulary_file"):
        for path in paths:
            yield Damage(f"{field} is {path[:20]!r}", _named(field, path))
    for path in paths:
        yield Damage(f"checksums has {path[:20]!r}", _changed(functools.partial(_named_only, path=path)))
    for field in ("name", "languages.0.source_language_code", "languages.0.target_language_code", "tokenizer.kind"):
        for text in ("", "\ud800", "a\nb", "\x1b[31m", "\0", "x" * 100_000):
            yield Damage(f"{field} is {text[:20]!r}", set_fields({field: text}))
    for ids in ([-1], [2**70], [5] * 100_000):
        yield Damage(f"a target prefix of {ids[0]}", set_fields({"languages.0.target_prefix_ids": ids}))
        yield Damage(f"a source prefix of {ids[0]}", set_fields({"languages.0.source_prefix_ids": ids}))
        yield Damage(f"a source of {ids[0]}", set_fields({"golden.0.source_ids": ids}))
        yield Damage(f"an output of {ids[0]}", set_fields({"golden.0.output_ids": ids}))
    languages = [{"code": f"x{number}"} for number in range(100_000)]
    yield Damage("languages without end", set_fields({"any_to_any": languages}))
    yield Damage("wrong checksums", set_fields({"checksums": {"encoder.onnx": "x"}}))
    yield Damage("a value of another kind", set_fields({"golden": {"a": []}}))
    raw = {
        "100 MB": b" " * 100_000_000,
        "nested lists": b"[" * 1_000_000,
        "nested objects": b'{"schema_version":1,"verification":' + b'{"a":' * 100_000,
        "a number of 5,000 digits": b'{"schema_version": 1' + b"0" * 5000 + b"}",
        "no number": b'{"schema_version": NaN}',
        "a list": b"[]",
        "nothing": b"null",
        "UTF-16": '{"schema_version": 1}'.encode("utf-16"),
        "no UTF-8": b'{"schema_version": 1, "name": "\xff"}',
    }
    for name, data in raw.items():
        yield Damage(f"manifest: {name}", _written(MANIFEST, data))
    twice = _rewritten(MANIFEST, lambda d: d.rstrip()[:-1] + b', "name": "", "name": "\\ud800"}')
    yield Damage("manifest: keys that stand twice", twice)


def with_tokenizer(bundle: Path, kind: str, files: dict[str, Path]) -> list[str]:
    """Make a bundle use another kind of tokenizer, with `files` by their fields of the manifest; return their names.

    The bundle fails its self-test, but only after these files were read.
    """
    for path in files.values():
        shutil.copyfile(path, bundle / path.name)
    special = {"<pad>": 0, "<unk>": 1, "</s>": 2}

    def change(document: Any) -> None:
        document["tokenizer"] |= {"kind": kind, "special_tokens": special} | {f: path.name for f, path in files.items()}
        document["checksums"] |= {path.name: file_sha256(bundle / path.name) for path in files.values()}

    _changed(change)(bundle)
    return [path.name for path in files.values()]


def _rewritten(file: str, change: Callable[[bytes], bytes]) -> Inflict:
    return lambda bundle: (bundle / file).write_bytes(change((bundle / file).read_bytes()))


def _written(file: str, data: bytes) -> Inflict:
    return lambda bundle: (bundle / file).write_bytes(data)


def _replaced(file: str, put: Callable[[Path], object]) -> Inflict:
    def inflict(bundle: Path) -> None:
        (bundle / file).unlink()
        put(bundle / file)

    return inflict


def _swapped(one: str, other: str) -> Inflict:
    return lambda bundle: shutil.copyfile(bundle / other, bundle / one)


def resealed(inflict: Inflict) -> Inflict:
    """Return the same with right checksums."""

    def inflict_unseen(bundle: Path) -> None:
        inflict(bundle)
        document = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
        document["checksums"] = {name: file_sha256(bundle / name) for name in document["checksums"]}
        (bundle / MANIFEST).write_text(json.dumps(document), encoding="utf-8")

    return inflict_unseen


def _changed(change: Callable[[Any], object]) -> Inflict:
    def inflict(bundle: Path) -> None:
        document = json.loads((bundle / MANIFEST).read_text(encoding="utf-8"))
        change(document)
        (bundle / MANIFEST).write_text(json.dumps(document), encoding="utf-8")

    return inflict


def _put(document: Any, field: str, value: Any) -> None:
    *path, last = (int(step) if step.isdigit() else step for step in field.split("."))
    for step in path:
        document = document[step]
    document[last] = value


def set_fields(values: Mapping[str, Any]) -> Inflict:
    """Return a change to fields of a manifest: `{"golden.0.text": ""}`."""

    def change(document: Any) -> None:
        for field, value in values.items():
            _put(document, field, value)

    return _changed(change)


def _named(field: str, path: str) -> Inflict:
    def change(document: Any) -> None:
        _put(document, field, path)
        document["checksums"][path] = "0" * 64

    return _changed(change)


def _named_only(document: Any, path: str) -> None:
    document["checksums"][path] = ""


def _cut(data: bytes, share: float) -> bytes:
    return data[: int(len(data) * share)]


def _flipped(data: bytes, place: float, bit: int) -> bytes:
    at = int(place * len(data))
    return data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]


def mutated(data: bytes, seed: int) -> bytes:
    """Flip bits, set bytes, remove and repeat parts: mostly where there is structure, at the beginnings and ends."""
    rng, changed = random.Random(seed), bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        if not changed:
            break
        at = rng.choice((rng.randrange(len(changed)), min(rng.randrange(2000), len(changed) - 1), len(changed) - 1))
        end = min(len(changed), at + rng.choice((1, 4, 64, 1000)))
        kind = rng.randrange(5)
        if kind <= 1:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            changed[at] = rng.choice((0, 1, 127, 128, 255))
        elif kind == 3:
            del changed[at:end]
        else:
            changed[at:at] = changed[at:end]
    return bytes(changed)
