"""Targets: checkpoints from strangers, which `export` reads. One file of a valid folder is changed."""

import functools
import io
import json
import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import save_file

from export.architecture.transformer import Transformer
from export.changed_checkpoint import NO_CHANGES, changed
from export.importers.imported import CheckpointError
from export.importers.marian_files.yaml_file import parse_pieces, parse_settings
from export.importers.numpy_archive import read_arrays
from export.importers.options import NOTHING_SAID, ImportOptions
from export.importers.selection import import_checkpoint
from tests.export.huggingface import checkpoints
from tests.export.importers.ctranslate2.test_packages import packed, unpacked
from tests.export.importers.ctranslate2.variants import write_folder
from tests.export.importers.marian_files.folders import opus, student
from tests.export.importers.state_dict import checkpoints as notebooks
from tests.export.importers.state_dict.readings import Attention, Choices
from tests.export.importers.t5 import checkpoints as t5_checkpoints
from tests.export.tiny_checkpoint import write_tiny_checkpoint
from tests.fuzz.bounded import Target
from tests.fuzz.models import folder
from tests.fuzz.properties import check_message
from tests.fuzz.source import Source

_MAX_PROBLEMS = 12_000  # characters of a message that lists them all

# For settings: values of each type, and of sizes that nothing has.
_VALUES: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 3, 7, 97, 10**9, 10**30, 0.5, -1e308, math.inf, math.nan),
    *("", "x", "relu", "__en__", "../x", "\x00", "a\u2028b", "9" * 5000),
    *([], [[]], [1], [None], ["x"], [{}], {}, {"0": {}}, {"-1": "x"}, {"content": 1}, {"7": {"content": "</s>"}}),
)

# Other files that transformers' folders may contain.
_COMPANIONS = ("added_tokens.json", "special_tokens_map.json", "tokenizer_config.json", "README.md")


class Sample(NamedTuple):
    """A valid checkpoint: its folder, its other settings, and the files that may be changed or added."""

    path: Path
    kind: str | None
    options: ImportOptions
    files: tuple[Path, ...]


def _of_folder(path: Path, companions: tuple[str, ...] = _COMPANIONS, options: ImportOptions = NOTHING_SAID) -> Sample:
    return Sample(path, None, options, tuple(sorted({*path.iterdir(), *(path / name for name in companions)})))


def _notebook(path: Path) -> Sample:
    path.mkdir()
    tokenizers = notebooks.train_json_tokenizers(path)
    written = notebooks.make(Choices(lambda: Attention("w_query w_key w_value w_o"))).write(path, tokenizers)
    assert written.options.config is not None
    return Sample(written.path, "pytorch", written.options, (written.path, written.options.config, *tokenizers))


def _ctranslate2(path: Path) -> Sample:
    write_folder(path, "pre")
    options = ImportOptions(source_language="en", target_language="de")
    return Sample(path, None, options, tuple(sorted({*path.iterdir(), path / "shared_vocabulary.txt"})))


def _argos(path: Path) -> Sample:
    path.mkdir()
    package = packed(unpacked(path / "package"), path / "package.argosmodel")
    return Sample(package, None, NOTHING_SAID, (package,))


def _adapter(path: Path) -> Sample:
    """Write an adapter beside its base model, into which it is merged."""
    module = "base_model.model.model.encoder.layers.0.fc1"
    matrices = {f"{module}.lora_A.weight": torch.ones(2, 32), f"{module}.lora_B.weight": torch.ones(64, 2)}
    settings = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "alpha_pattern": {"fc1": 3}, "bias": "none"}
    checkpoints.marian(path, **checkpoints.FEW_LAYERS)
    (path / "adapter_config.json").write_text(json.dumps(settings), encoding="utf-8")
    save_file(matrices, path / "adapter_model.safetensors")
    return Sample(path, None, NOTHING_SAID, (path / "adapter_config.json", path / "adapter_model.safetensors"))


CHECKPOINTS: dict[str, Callable[[Path], Sample]] = {
    "native": lambda path: _of_folder(write_tiny_checkpoint(path), companions=()),
    "marian": lambda path: _of_folder(checkpoints.marian(path, languages=("fr", "de"))),
    "m2m100": lambda path: _of_folder(checkpoints.m2m100(path)),
    "nllb": lambda path: _of_folder(checkpoints.nllb(path)),
    "mbart": lambda path: _of_folder(checkpoints.mbart(path)),
    "plbart": lambda path: _of_folder(checkpoints.plbart(path)),
    "bart": lambda path: _of_folder(checkpoints.bart(path), options=ImportOptions("en", "en")),
    "t5": lambda path: _of_folder(t5_checkpoints.t5(path)),
    "madlad": lambda path: _of_folder(t5_checkpoints.madlad(path)),
    "adapter": _adapter,
    "pytorch": _notebook,
    "ctranslate2": _ctranslate2,
    "argos": _argos,
    "student": lambda path: _of_folder(student(path), companions=("metadata.json", "decoder.yml")),
    "opus": lambda path: _of_folder(opus(path), companions=()),
}


@functools.cache
def _sample(kind: str) -> Sample:
    parent = folder() / "checkpoints"
    parent.mkdir(exist_ok=True)
    return CHECKPOINTS[kind](parent / kind)


def checkpoint(kind: str) -> Target:
    """Return a target that reads a checkpoint of this kind."""

    def target(data: bytes) -> None:
        """Check that it is rejected in one line that lists what is wrong, or that its model can be run."""
        source, sample = Source(data), _sample(kind)
        path = source.pick(sample.files)
        content = path.read_bytes() if path.exists() else None
        try:
            path.write_bytes(_changed(path, content or b"{}", source))
            _read(sample)
        finally:
            if content is None:
                path.unlink()
            else:
                path.write_bytes(content)

    return target


def marian_yaml(data: bytes) -> None:
    """Check that YAML is rejected in one line, or is a tree of no more parts than it has bytes."""
    try:
        assert _num_parts(parse_settings(data)) <= 2 * len(data)
    except ValueError as error:
        check_message(error)
    for name in ("vocab.yml", "vocab.json", "src.vocab"):
        try:
            pieces = parse_pieces(name, data)
        except ValueError as error:
            check_message(error)
            continue
        assert pieces and len("".join(pieces).encode()) <= len(data)
        assert len(set(pieces.values())) == len(pieces) and min(pieces.values()) >= 0


def _num_parts(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_num_parts, inner))


def numpy_archive(data: bytes) -> None:
    """Check that an archive, or an array in one, is rejected in one line, or holds no more than its bytes allow."""
    wrapped = io.BytesIO()
    with zipfile.ZipFile(wrapped, "w") as archive:
        archive.writestr("W.npy", data)
    for content in (data, wrapped.getvalue()):
        try:
            arrays = dict(read_arrays(content))
        except ValueError as error:
            check_message(error)
            continue
        assert sum(each.nbytes for each in arrays.values()) <= 100 * len(content) + 2**20


def _changed(path: Path, content: bytes, source: Source) -> bytes:
    """Return the file's content with some settings, some bytes or all of it replaced."""
    is_setting = source.number() % 4 != 3
    if is_setting and path.suffix == ".json":
        document = json.loads(content)
        for _ in range(1 + source.number() % 3):
            name: Any = source.number() % len(document) if isinstance(document, list) else source.line()
            if isinstance(document, dict) and document and source.number() % 4:
                name = source.pick(sorted(document))
            document[name] = source.pick(_VALUES) if source.number() % 4 else source.line()
        return json.dumps(document).encode("utf-8", "surrogatepass")
    if is_setting:
        place = len(content) * source.number() // 256 + source.number()
        return content[:place] + (new := source.bytes()) + content[place + len(new) :]
    return source.bytes()


def _read(sample: Sample) -> None:
    try:
        with changed(sample.path, NO_CHANGES) as (given, _):
            found = import_checkpoint(given, sample.kind, sample.options).in_float32()
    except CheckpointError as error:
        check_message(error, _MAX_PROBLEMS)
        return
    assert found.languages or found.any_to_any
    assert found.limits.max_source_tokens > 0 and found.limits.max_output_tokens > 0
    length = min(3, found.limits.max_source_tokens)
    with torch.inference_mode():
        memory = Transformer.of(found.model).encoder(torch.tensor([[found.tokenizer.eos_id] * length]))
    assert memory.shape[:2] == (1, length)
