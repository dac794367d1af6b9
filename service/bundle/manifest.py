"""`manifest.json`: what a bundle is, what it holds, and what the service must know to run it.

The schema version counts incompatible changes of this file; version 1 stays loadable for good.
"""

import dataclasses
import itertools
import json
import types
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from service.errors import shown

SCHEMA_VERSION = 1
MANIFEST_NAME = "manifest.json"
MAX_MANIFEST_BYTES = 4 * 1024 * 1024
_MAX_NAME_BYTES = 255  # what file systems take
_ALLOWED_NAMES = f"allowed are plain relative names of at most {_MAX_NAME_BYTES} bytes"


class BundleError(Exception):
    """A bundle can't be used; the message says which one, why, and what to do."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Sizes that the service needs to lay out its buffers."""

    num_decoder_layers: int
    num_heads: int
    head_size: int
    vocabulary_size: int


@dataclass(frozen=True, slots=True)
class Graphs:
    """File names of the graphs, relative to the bundle; `alignment` is empty where a bundle has none.

    `alignment_layer` is the decoder layer whose cross-attention the alignment graph gives: it reads the keys and values
    of those below.
    """

    encoder: str = "encoder.onnx"
    decoder_step: str = "decoder_step.onnx"
    alignment: str = ""
    alignment_layer: int = 0

    @property
    def files(self) -> tuple[str, ...]:
        """Names of all that the bundle has."""
        return tuple(name for name in (self.encoder, self.decoder_step, self.alignment) if name)


@dataclass(frozen=True, slots=True)
class TokenizerSpec:
    """Which tokenizer to build from which files, and the model's special token ids.

    The kinds are those of `service.text.tokenizers`; files that a kind does without are empty. `target_file` and
    `target_vocabulary_file` are for models that write otherwise than they read. `reserved_symbols` are pieces that
    training showed to stand for themselves on both sides: place-holders. `special_tokens` maps the text of each special
    token to its id, where the files don't tell (kinds "marian" and "m2m100"); `cleans_up_spaces` says that spaces
    before punctuation are taken out of translations.
    """

    kind: str
    file: str
    pad_id: int
    eos_id: int
    unk_id: int
    decoder_start_id: int
    reserved_symbols: tuple[str, ...] = ()
    target_file: str = ""
    vocabulary_file: str = ""
    target_vocabulary_file: str = ""
    source_eos_id: int | None = None  # None: as `eos_id`, which is the target's
    adds_source_eos: bool = True  # whether the encoder reads an end-of-sentence id at all
    special_tokens: dict[str, int] = field(default_factory=dict)
    cleans_up_spaces: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """Names of all its files in the bundle."""
        named = (self.file, self.target_file, self.vocabulary_file, self.target_vocabulary_file)
        return tuple(name for name in named if name)

    def source_ids(self, piece_ids: Iterable[int], pair: "LanguagePair") -> tuple[int, ...]:
        """What the encoder reads: the pair's prefix, a text's pieces and the source's end-of-sentence id."""
        if not self.adds_source_eos:
            return (*pair.source_prefix_ids, *piece_ids)
        eos_id = self.eos_id if self.source_eos_id is None else self.source_eos_id
        return (*pair.source_prefix_ids, *piece_ids, eos_id)


@dataclass(frozen=True, slots=True)
class LanguagePair:
    """One direction that the model translates, with the ids it wants before the source and the target."""

    source_language_code: str
    target_language_code: str
    source_prefix_ids: tuple[int, ...] = ()
    target_prefix_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Language:
    """A language of a model that translates each of its languages into each other one.

    `source_prefix_ids` come before a text in this language, `target_prefix_ids` before a translation into it.
    """

    code: str
    source_prefix_ids: tuple[int, ...] = ()
    target_prefix_ids: tuple[int, ...] = ()


def directions(languages: Iterable[LanguagePair], any_to_any: Iterable[Language]) -> Iterator[LanguagePair]:
    """The pairs themselves, and those from each of `any_to_any` into each other one."""
    yield from languages
    for source, target in itertools.permutations(any_to_any, 2):
        yield LanguagePair(source.code, target.code, source.source_prefix_ids, target.target_prefix_ids)


@dataclass(frozen=True, slots=True)
class Limits:
    """Most tokens per sequence, special tokens included."""

    max_source_tokens: int
    max_output_tokens: int


@dataclass(frozen=True, slots=True)
class GenerationDefaults:
    """What a request that sets no options gets; the last two are the model's in any case (`DecodingOptions`)."""

    beam_size: int = 1
    length_penalty: float = 1.0
    num_hypotheses: int = 1
    stops_early: bool = False
    forces_end: bool = False


@dataclass(frozen=True, slots=True)
class GoldenPair:
    """A sentence with the greedy token ids that the exported model gave for it; the service's self-test.

    `output_ids` have neither `decoder_start_id` nor prefix. They end with `eos_id`, unless the model did not end in
    time: then they are the beginning of what it says.
    """

    source_language_code: str
    target_language_code: str
    text: str
    source_ids: tuple[int, ...]
    output_ids: tuple[int, ...]
    translation: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The whole of `manifest.json`."""

    name: str
    model: ModelShape
    tokenizer: TokenizerSpec
    languages: tuple[LanguagePair, ...]  # directions, besides those among `any_to_any`
    limits: Limits
    golden: tuple[GoldenPair, ...]
    checksums: dict[str, str]  # every other file of the bundle -> SHA-256
    checkpoint_sha256: str  # of the weights it was exported from
    precision: str = "float32"  # of the weights and of the dense layers' products: float32, float16 or int8
    suppressed_ids: tuple[int, ...] = ()
    generation: GenerationDefaults = field(default_factory=GenerationDefaults)
    graphs: Graphs = field(default_factory=Graphs)
    tools: dict[str, str] = field(default_factory=dict)  # tool -> version that wrote the bundle
    verification: dict[str, Any] = field(default_factory=dict)  # what export measured
    quality: dict[str, Any] = field(default_factory=dict)  # what the precision costs against float32
    architecture: dict[str, Any] = field(default_factory=dict)  # for people: what kind of model, its sizes and choices
    licence: str = ""  # of the weights, as their model card states it
    any_to_any: tuple[Language, ...] = ()  # each is translated into each other one
    schema_version: int = SCHEMA_VERSION

    def pairs(self) -> Iterator[LanguagePair]:
        """Every direction that the model translates; of 200 languages there are 40,000."""
        return directions(self.languages, self.any_to_any)

    @property
    def first_pair(self) -> LanguagePair:
        """The direction to try the model with."""
        return next(self.pairs())

    def source_ids(self, piece_ids: Iterable[int], pair: LanguagePair) -> tuple[int, ...]:
        """As `TokenizerSpec.source_ids`."""
        return self.tokenizer.source_ids(piece_ids, pair)

    def without_end(self, output_ids: tuple[int, ...]) -> tuple[int, ...]:
        """A golden pair's output ids without the end-of-sentence id, if they have one."""
        return output_ids[:-1] if self._is_ended(output_ids) else output_ids

    def golden_limit(self, golden: GoldenPair) -> int:
        """Most output tokens to decode of a golden pair's text, so that it can be compared."""
        return self.limits.max_output_tokens if self._is_ended(golden.output_ids) else len(golden.output_ids)

    def _is_ended(self, output_ids: tuple[int, ...]) -> bool:
        return output_ids[-1:] == (self.tokenizer.eos_id,)

    def save(self, directory: Path) -> None:
        """Write `manifest.json` into `directory`."""
        text = json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False)
        (directory / MANIFEST_NAME).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, directory: Path) -> "Manifest":
        """Read and check `manifest.json`; the other files are not touched.

        Raises:
            BundleError: it is missing, no valid JSON, of a newer schema, or a field is missing or mistyped.
        """
        path = directory / MANIFEST_NAME
        try:
            if path.stat().st_size > MAX_MANIFEST_BYTES:
                raise BundleError(f"{path} is larger than {MAX_MANIFEST_BYTES} bytes; this is no bundle's manifest.")
            document = json.loads(path.read_text(encoding="utf-8"))
            json.dumps(document, ensure_ascii=False).encode()  # half a surrogate pair can't be told to anyone
        except FileNotFoundError:
            raise BundleError(f"{directory} holds no {MANIFEST_NAME}; write a bundle with 'make export'.") from None
        except (OSError, ValueError, RecursionError) as error:
            raise BundleError(f"{path} can't be read: {error}.") from error
        return cls.from_document(document, str(path))

    @classmethod
    def from_document(cls, document: Any, where: str) -> "Manifest":
        """Build a manifest from parsed JSON; `where` names it in errors. Unknown fields are ignored.

        Raises:
            BundleError: as for `load`.
        """
        version = document.get("schema_version") if isinstance(document, dict) else None
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise BundleError(
                f"{where}: schema_version is {shown(version)}; expected a number from 1 to {SCHEMA_VERSION}."
            )
        if version > SCHEMA_VERSION:
            raise BundleError(
                f"{where}: schema_version is {version}, this service reads up to {SCHEMA_VERSION}; "
                "upgrade the service or export the bundle again."
            )
        manifest = typing.cast(Manifest, _build(cls, document, where, "manifest"))
        manifest._check(where)
        return manifest

    def _check(self, where: str) -> None:
        named = {self.graphs.encoder, self.graphs.decoder_step, *self.graphs.files}
        named |= {self.tokenizer.file, *self.tokenizer.files}
        for name in sorted(named | self.checksums.keys()):
            parts = PurePosixPath(name)
            if not name or parts.is_absolute() or ".." in parts.parts or "\\" in name:
                raise BundleError(f"{where}: file name {shown(name)} leaves the bundle; {_ALLOWED_NAMES}.")
            if not name.isprintable() or len(name.encode()) > _MAX_NAME_BYTES:
                raise BundleError(f"{where}: file name {shown(name)} can't be used; {_ALLOWED_NAMES}.")
        for name in sorted(named - self.checksums.keys()):
            raise BundleError(f"{where}: checksums lacks {shown(name)}, which the bundle uses.")
        sizes = {
            "model.num_decoder_layers": self.model.num_decoder_layers,
            "model.num_heads": self.model.num_heads,
            "model.head_size": self.model.head_size,
            "model.vocabulary_size": self.model.vocabulary_size,
            "limits.max_source_tokens": self.limits.max_source_tokens,
            "limits.max_output_tokens": self.limits.max_output_tokens,
        }
        for name, value in sizes.items():
            if not 1 <= value <= 10_000_000:
                raise BundleError(f"{where}: {name} is {value}; expected a positive number.")
        if not 0 <= self.graphs.alignment_layer < self.model.num_decoder_layers:
            raise BundleError(
                f"{where}: graphs.alignment_layer is {self.graphs.alignment_layer}; the model has decoder layers 0 to "
                f"{self.model.num_decoder_layers - 1}."
            )
        if not self.languages and len(self.any_to_any) < 2:
            raise BundleError(f"{where}: languages and any_to_any name no pair; a bundle translates at least one.")
        if not self.golden:
            raise BundleError(f"{where}: golden is empty; the self-test needs at least one pair.")


def _build(kind: Any, value: Any, where: str, name: str) -> Any:
    """Make a value of the annotated type `kind` out of parsed JSON, or raise a BundleError that names the field."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        if not isinstance(value, dict):
            raise BundleError(f"{where}: {name} is {shown(value)}; expected an object.")
        hints = typing.get_type_hints(kind)
        chosen = {}
        for item in dataclasses.fields(kind):
            if item.name in value:
                chosen[item.name] = _build(hints[item.name], value[item.name], where, f"{name}.{item.name}")
            elif item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING:
                raise BundleError(f"{where}: {name}.{item.name} is missing.")
        return typing.cast(type, kind)(**chosen)
    if origin is tuple:
        if not isinstance(value, list):
            raise BundleError(f"{where}: {name} is {shown(value)}; expected a list.")
        return tuple(_build(arguments[0], entry, where, f"{name}[{i}]") for i, entry in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            raise BundleError(f"{where}: {name} is {shown(value)}; expected an object.")
        return {key: _build(arguments[1], entry, where, f"{name}[{shown(key)}]") for key, entry in value.items()}
    if isinstance(kind, types.UnionType):  # X | None
        return None if value is None else _build(arguments[0], value, where, name)
    if kind is Any:
        return value
    accepted = (int, float) if kind is float else kind
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise BundleError(f"{where}: {name} is {shown(value)}; expected {kind.__name__}.")
    return value
