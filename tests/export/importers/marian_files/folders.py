"""Folders of students and of OPUS-MT, and containers with any content."""

import shutil
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy import typing as npt

from export.importers.marian_files.container import CONFIG

DATA = Path(__file__).parent / "data"
FLOAT32, INT8, INTGEMM8 = 0x0404, 0x0101, 0x4101
Item = tuple[str, int, tuple[int, ...], bytes]
_OPUS_MODEL = "opus/model.npz=opusTCv20210807+bt.spm32k-spm32k.transformer-big.model1.npz.best-perplexity.npz"
OPUS_VOCABULARY = "opusTCv20210807+bt.spm32k-spm32k.vocab.yml"
_OPUS_FILES = (
    _OPUS_MODEL,
    f"opus/opus.vocab.yml={OPUS_VOCABULARY}",
    "opus/source.spm=source.spm",
    "opus/target.spm=target.spm",
)
_OPUS_CARD = (
    "# opus-2021-02-22.zip\n\n* source language(s): eng\n* target language(s): deu\n* model: transformer-align\n"
)
_OPUS_DECODER = f"""\
models:
  - /home/someone/models/eng-deu/{_OPUS_MODEL.partition("=")[2]}
vocabs:
  - /home/someone/models/eng-deu/{OPUS_VOCABULARY}
  - /home/someone/models/eng-deu/{OPUS_VOCABULARY}
beam-size: 6
normalize: 1
word-penalty: 0
mini-batch: 1
relative-paths: true
"""


def folder(directory: Path, *names: str) -> Path:
    """Return a new folder with some files of the data, in the given order of source and new name."""
    directory.mkdir(parents=True)
    for name in names:
        source, _, target = name.partition("=")
        shutil.copyfile(DATA / source, directory / (target or source))
    return directory


def student(directory: Path) -> Path:
    """Return a new folder of a student, as Mozilla has them."""
    names = ("model.intgemm.alphas.bin=model.ende.intgemm.alphas.bin", "vocab.spm=vocab.ende.spm")
    return folder(directory, *names, "lex.bin=lex.50.50.ende.s2t.bin")


def opus(directory: Path, decoder: str = _OPUS_DECODER) -> Path:
    """Return a folder of the Tatoeba challenge."""
    folder(directory, *_OPUS_FILES)
    (directory / "README.md").write_text(_OPUS_CARD, encoding="utf-8")
    (directory / "decoder.yml").write_text(decoder, encoding="utf-8")
    return directory


def settings() -> dict[str, Any]:
    """Return the settings of the student."""
    with np.load(DATA / "model.npz") as archive:
        text = archive[CONFIG].astype(np.uint8).tobytes()
    return dict(yaml.safe_load(text.rstrip(b"\0")))


def arrays() -> dict[str, npt.NDArray[Any]]:
    """Return all arrays of the student in float32, as Marian stores them."""
    with np.load(DATA / "model.npz") as archive:
        return {name: archive[name] for name in archive.files}


def float_items(parameters: Mapping[str, npt.NDArray[Any]]) -> list[Item]:
    """Return parameters as items of a container."""
    return [
        (name, FLOAT32, values.shape, np.ascontiguousarray(values, np.float32).tobytes())
        for name, values in parameters.items()
        if not name.startswith("special:")
    ]


def config_item(changed: Mapping[str, Any] | None = None) -> Item:
    """Return the settings as an item, some of them changed."""
    text = yaml.safe_dump({**settings(), **(changed or {})}).encode() + b"\0"
    return CONFIG, INT8, (len(text),), text


def container(items: Iterable[Item], version: int = 1) -> bytes:
    """Return a file as Marian writes it: blobs are padded to multiples of 256 bytes."""
    items = [(name, kind, shape, data + bytes(-len(data) % 256)) for name, kind, shape, data in items]
    head = struct.pack("<QQ", version, len(items))
    for name, kind, shape, data in items:
        head += struct.pack("<QQQQ", len(name) + 1, kind, len(shape), len(data))
    head += b"".join(name.encode() + b"\0" for name, *_ in items)
    head += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in items)
    pad = 256 - (len(head) + 8) % 256
    return head + struct.pack("<Q", pad) + bytes(pad) + b"".join(data for *_, data in items)
