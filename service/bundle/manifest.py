"""`manifest.json`: a bundle's identity, its files, and the parameters that the service needs to run it.

The schema version counts incompatible changes of this file; version 1 stays loadable forever.
"""

import dataclasses
import functools
import itertools
import json
import stat
import types
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from service.domain.errors import listed, shown
from service.domain.options import OPTIONS

SCHEMA_VERSION = 1
MANIFEST_NAME = "manifest.json"
MAX_MANIFEST_BYTES = 4 * 1024 * 1024

# Far above any existing model. These numbers are trusted before a graph is opened, and determine memory use.
_MOST = {
    "model.num_decoder_layers": 1_000,
    "model.num_heads": 1_000,
    "model.head_size": 10_000,
    "model.vocabulary_size": 10_000_000,
    "limits.max_source_tokens": 1_000_000,
    "limits.max_output_tokens": 1_000_000,
    "generation.beam_size": 1_000,
    "generation.num_hypotheses": 1_000,
}
_NO_DEFAULTS = frozenset({"max_output_tokens", "return_scores", "seed"})  # the first is in `limits`
_MAX_ID = 10_000_000
_MAX_PENALTY = 1_000
_MAX_PAIRS = 10_000
_MAX_LANGUAGES = 1_000  # each is translated into every other one
MAX_NAME_BYTES = 255  # of models, languages and files: the limit of file systems
_ALLOWED_NAMES = f"allowed are plain relative names of at most {MAX_NAME_BYTES} bytes"
_MAX_REASON_LENGTH = 1_000


class BundleError(Exception):
    """A bundle can't be used; the message names it, the reason and the remedy."""


def one_line(error: BaseException) -> str:
    """Return an error's message as one printable line for logs: libraries quote the contents of damaged files."""
    words = " ".join(str(error).split()) or type(error).__name__
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in words[:_MAX_REASON_LENGTH])


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Sizes that determine the layout of the service's buffers."""

    num_decoder_layers: int
    num_heads: int
    head_size: int
    vocabulary_size: int


@dataclass(frozen=True, slots=True)
class Graphs:
    """File names of the graphs, relative to the bundle; `alignment` is empty if there is none.

    `alignment_layer` is the decoder layer whose cross-attention the alignment graph outputs; the graph reads the keys
    and values of the layers below it.
    """

    encoder: str = "encoder.onnx"
    decoder_step: str = "decoder_step.onnx"
    alignment: str = ""
    alignment_layer: int = 0

    @property
    def files(self) -> tuple[str, ...]:
        """Return the names of all graphs in the bundle."""
        return tuple(name for name in (self.encoder, self.decoder_step, self.alignment) if name)


@dataclass(frozen=True, slots=True)
class TokenizerSpec:
    """The kind and files of the tokenizer, and the model's special token ids.

    The kinds are those of `service.text.tokenizers`; files that a kind does not use are empty. `target_file` and
    `target_vocabulary_file` are for models whose target tokenizer differs from the source's. `reserved_symbols` are
    pieces that training has shown to be copied unchanged on both sides: placeholders. `special_tokens` maps the text of
    each special token to its id, if the files lack them (kinds "marian" and "m2m100"); with `cleans_up_spaces`, spaces
    before punctuation are removed from translations.
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
    source_eos_id: int | None = None  # None: same as `eos_id`, which is the target's
    adds_source_eos: bool = True  # whether the encoder's input ends with an end-of-sentence id
    special_tokens: dict[str, int] = field(default_factory=dict)
    cleans_up_spaces: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """Return the names of all its files in the bundle."""
        named = (self.file, self.target_file, self.vocabulary_file, self.target_vocabulary_file)
        return tuple(name for name in named if name)

    def source_ids(self, piece_ids: Iterable[int], pair: "LanguagePair") -> tuple[int, ...]:
        """Return the encoder's input: the pair's prefix, a text's pieces and the source's end-of-sentence id."""
        if not self.adds_source_eos:
            return (*pair.source_prefix_ids, *piece_ids)
        eos_id = self.eos_id if self.source_eos_id is None else self.source_eos_id
        return (*pair.source_prefix_ids, *piece_ids, eos_id)


@dataclass(frozen=True, slots=True)
class LanguagePair:
    """One direction that the model translates, with the prefix ids of the source and the target."""

    source_language_code: str
    target_language_code: str
    source_prefix_ids: tuple[int, ...] = ()
    target_prefix_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Language:
    """A language of a model that translates each of its languages into every other one.

    `source_prefix_ids` precede a text in this language, `target_prefix_ids` a translation into it.
    """

    code: str
    source_prefix_ids: tuple[int, ...] = ()
    target_prefix_ids: tuple[int, ...] = ()


def directions(languages: Iterable[LanguagePair], any_to_any: Iterable[Language]) -> Iterator[LanguagePair]:
    """Yield the pairs themselves, and those from each of `any_to_any` into every other one."""
    yield from languages
    for source, target in itertools.permutations(any_to_any, 2):
        yield LanguagePair(source.code, target.code, source.source_prefix_ids, target.target_prefix_ids)


@dataclass(frozen=True, slots=True)
class Limits:
    """Maximum tokens per sequence, special tokens included."""

    max_source_tokens: int
    max_output_tokens: int


@dataclass(frozen=True, slots=True)
class GenerationDefaults:
    """Defaults for requests that set no options; `stops_early` and `forces_end` are the model's in any case.

    `options` are the checkpoint's values for other options of the table in `service.domain.options`, by name.
    """

    beam_size: int = 1
    length_penalty: float = 1.0
    num_hypotheses: int = 1
    stops_early: bool = False
    forces_end: bool = False
    options: dict[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class GoldenPair:
    """A sentence and the greedy token ids that the exported model produced for it; the service's self-test.

    `output_ids` have neither `decoder_start_id` nor prefix. They end with `eos_id`, unless the model's output was cut
    off.
    """

    source_language_code: str
    target_language_code: str
    text: str
    source_ids: tuple[int, ...]
    output_ids: tuple[int, ...]
    translation: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of `manifest.json`."""

    name: str
    model: ModelShape
    tokenizer: TokenizerSpec
    languages: tuple[LanguagePair, ...]  # directions, in addition to those among `any_to_any`
    limits: Limits
    golden: tuple[GoldenPair, ...]
    checksums: dict[str, str]  # every other file of the bundle -> SHA-256
    checkpoint_sha256: str  # of the weights it was exported from
    precision: str = "float32"  # of the weights and of the dense layers' products: float32, float16 or int8
    suppressed_ids: tuple[int, ...] = ()
    generation: GenerationDefaults = field(default_factory=GenerationDefaults)
    graphs: Graphs = field(default_factory=Graphs)
    tools: dict[str, str] = field(default_factory=dict)  # tool -> version, of those that wrote the bundle
    verification: dict[str, Any] = field(default_factory=dict)  # measurements of the export
    quality: dict[str, Any] = field(default_factory=dict)  # the precision's cost relative to float32
    architecture: dict[str, Any] = field(default_factory=dict)  # for people: the model's type, sizes and variants
    licence: str = ""  # of the weights, as their model card states it
    any_to_any: tuple[Language, ...] = ()  # each is translated into every other one
    schema_version: int = SCHEMA_VERSION

    def pairs(self) -> Iterator[LanguagePair]:
        """Yield every direction that the model translates; for 200 languages that is 40,000."""
        return directions(self.languages, self.any_to_any)

    @property
    def longest_target_prefix(self) -> int:
        """Return the largest number of ids that precede a translation."""
        return max(len(each.target_prefix_ids) for each in self._with_prefixes)

    @property
    def first_pair(self) -> LanguagePair:
        """Return the direction to test the model with."""
        return next(self.pairs())

    def source_ids(self, piece_ids: Iterable[int], pair: LanguagePair) -> tuple[int, ...]:
        """See `TokenizerSpec.source_ids`."""
        return self.tokenizer.source_ids(piece_ids, pair)

    def without_end(self, output_ids: tuple[int, ...]) -> tuple[int, ...]:
        """Return a golden pair's output ids without the end-of-sentence id, if they have one."""
        return output_ids[:-1] if self._is_ended(output_ids) else output_ids

    def golden_limit(self, golden: GoldenPair) -> int:
        """Return the maximum number of output tokens to decode for a golden pair's text to be comparable."""
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
            BundleError: it is missing, not valid JSON, of a newer schema, or a field is missing or mistyped.
        """
        path = directory / MANIFEST_NAME
        try:
            if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe would block, reading a device would never end
                raise BundleError(f"{path} is not a file; write a bundle with 'make export'.")
            with path.open("rb") as file:
                data = file.read(MAX_MANIFEST_BYTES + 1)
            if len(data) > MAX_MANIFEST_BYTES:
                raise BundleError(f"{path} is larger than {MAX_MANIFEST_BYTES} bytes; this is not a bundle's manifest.")
            document = json.loads(data.decode())
        except FileNotFoundError:
            raise BundleError(f"{directory} holds no {MANIFEST_NAME}; write a bundle with 'make export'.") from None
        except (OSError, ValueError, RecursionError) as error:  # ValueError: no UTF-8, no JSON, too many digits
            raise BundleError(f"{path} can't be read: {one_line(error)}.") from error
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
        self._check_files(where)
        self._check_numbers(where)
        if not 0 <= self.graphs.alignment_layer < self.model.num_decoder_layers:
            raise BundleError(
                f"{where}: graphs.alignment_layer is {self.graphs.alignment_layer}; the model has decoder layers 0 to "
                f"{self.model.num_decoder_layers - 1}."
            )
        if not self.languages and len(self.any_to_any) < 2:
            raise BundleError(f"{where}: languages and any_to_any name no pair; a bundle translates at least one.")
        for field_name, entries, most in (
            ("languages", len(self.languages), _MAX_PAIRS),
            ("any_to_any", len(self.any_to_any), _MAX_LANGUAGES),
        ):
            if entries > most:
                raise BundleError(f"{where}: {field_name} has {entries} entries; allowed are {most}.")
        names = {"name": [self.name], "precision": [self.precision], "tokenizer.kind": [self.tokenizer.kind]}
        names |= {"any_to_any": [language.code for language in self.any_to_any]}
        names["languages"] = [
            code for pair in self.languages for code in (pair.source_language_code, pair.target_language_code)
        ]
        for field_name, values in names.items():
            for value in values:
                if not is_name(value):
                    raise BundleError(
                        f"{where}: {field_name} has {shown(value)}; allowed are 1 to {MAX_NAME_BYTES} printable "
                        "bytes of UTF-8."
                    )
        if not self.golden:
            raise BundleError(f"{where}: golden is empty; the self-test needs at least one pair.")

    def _check_files(self, where: str) -> None:
        named = {self.graphs.encoder, self.graphs.decoder_step, *self.graphs.files}
        named |= {self.tokenizer.file, *self.tokenizer.files}
        for name in sorted(named | self.checksums.keys()):
            parts = PurePosixPath(name)
            if not is_name(name) or parts.is_absolute() or ".." in parts.parts or "\\" in name:
                raise BundleError(
                    f"{where}: file name {shown(name)} is outside the bundle or not a file name; {_ALLOWED_NAMES}."
                )
        for name in sorted(named - self.checksums.keys()):
            raise BundleError(f"{where}: checksums lacks {name!r}, which the bundle uses.")

    def _check_numbers(self, where: str) -> None:
        for name, most in _MOST.items():
            part, _, field_name = name.partition(".")
            value = getattr(getattr(self, part), field_name)
            if not 1 <= value <= most:
                raise BundleError(f"{where}: {name} is {shown(value)}; expected a number from 1 to {most}.")
        if not -_MAX_PENALTY <= self.generation.length_penalty <= _MAX_PENALTY:  # also rejects NaN
            raise BundleError(
                f"{where}: generation.length_penalty is {shown(self.generation.length_penalty)}; expected a "
                f"number from -{_MAX_PENALTY} to {_MAX_PENALTY}."
            )
        self._check_options(where)
        for name, token_id in self._token_ids():
            if not 0 <= token_id < _MAX_ID:
                raise BundleError(f"{where}: {name} has the id {shown(token_id)}; expected 0 to {_MAX_ID - 1}.")
        for pair in self._with_prefixes:
            if max(pair.target_prefix_ids, default=0) >= self.model.vocabulary_size:
                raise BundleError(
                    f"{where}: a target prefix has the id {max(pair.target_prefix_ids)}; the model has "
                    f"{self.model.vocabulary_size} tokens."
                )

    def _check_options(self, where: str) -> None:
        further = OPTIONS.keys() - _hints(GenerationDefaults).keys() - _NO_DEFAULTS
        for name, value in self.generation.options.items():
            if name not in further:
                raise BundleError(
                    f"{where}: generation.options has {shown(name)}; this service knows {listed(sorted(further))}. "
                    "Upgrade the service or export the bundle again."
                )
            option = OPTIONS[name]
            is_of_kind = isinstance(value, (int, float) if option.kind is float else option.kind)
            if not is_of_kind or not option.permits(value, option.high):
                raise BundleError(
                    f"{where}: generation.options[{name}] is {shown(value)}; expected a number from {option.allowed()}."
                )

    @property
    def _with_prefixes(self) -> list[LanguagePair | Language]:
        return [*self.languages, *self.any_to_any]

    def _token_ids(self) -> Iterator[tuple[str, int]]:
        tokenizer = self.tokenizer
        for name in ("pad_id", "eos_id", "unk_id", "decoder_start_id", "source_eos_id"):
            if (token_id := getattr(tokenizer, name)) is not None:
                yield f"tokenizer.{name}", token_id
        yield from (("tokenizer.special_tokens", token_id) for token_id in tokenizer.special_tokens.values())
        yield from (("suppressed_ids", token_id) for token_id in self.suppressed_ids)
        for golden in self.golden:
            yield from (("golden", token_id) for token_id in (*golden.source_ids, *golden.output_ids))
        for pair in self._with_prefixes:
            yield from (("a prefix", token_id) for token_id in (*pair.source_prefix_ids, *pair.target_prefix_ids))


def is_name(name: str) -> bool:
    """Return whether it can be in a log line, a metric's label and a path."""
    return name.isprintable() and 0 < len(name.encode()) <= MAX_NAME_BYTES


def _build(kind: Any, value: Any, where: str, name: str) -> Any:
    """Build a value of the annotated type `kind` from parsed JSON, or raise a BundleError that names the field."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        if not isinstance(value, dict):
            raise BundleError(f"{where}: {name} is {shown(value)}; expected an object.")
        hints = _hints(typing.cast(type, kind))
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
        for key in value:
            _build(str, key, where, f"a key of {name}")
        return {key: _build(arguments[1], entry, where, f"{name}[{shown(key)}]") for key, entry in value.items()}
    if isinstance(kind, types.UnionType):  # X | None
        return None if value is None else _build(arguments[0], value, where, name)
    if kind is Any:
        return value
    accepted = (int, float) if kind is float else kind
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise BundleError(f"{where}: {name} is {shown(value)}; expected {kind.__name__}.")
    if isinstance(value, str) and not _is_unicode(value):
        raise BundleError(f"{where}: {name} is {shown(value)}, which is not valid Unicode.")
    return value


@functools.cache  # few classes; a manifest may contain thousands of objects of one of them
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _is_unicode(text: str) -> bool:
    """Return whether a text is valid Unicode: JSON allows lone surrogates; files, messages and tokenizers don't."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
