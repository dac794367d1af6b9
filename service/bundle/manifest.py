"""`manifest.json`: a bundle's identity, its files, and the parameters that the service needs to run it.

The schema version counts incompatible changes, and new fields that an older service, which ignores unknown ones, may
not ignore. Every version stays loadable forever: `tests/api/bundles` has one of each.
"""

import dataclasses
import json
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from service.bundle.errors import BundleError, one_line
from service.bundle.fields import MAX_NAME_BYTES, build, hints_of, is_name
from service.bundle.manifest_parts import (
    STATE_MULTIPLE,
    GenerationDefaults,
    GoldenPair,
    Graphs,
    Language,
    LanguagePair,
    Limits,
    ModelShape,
    TokenizerSpec,
    directions,
)
from service.bundle.regular_file import open_regular
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
_NO_DEFAULTS = frozenset({"max_output_tokens", "return_scores", "seed", "check_numbers"})  # the first is in `limits`
_MAX_ID = 10_000_000
_MAX_PENALTY = 1_000
_MAX_PAIRS = 10_000
_MAX_LANGUAGES = 1_000  # each is translated into every other one
_ALLOWED_NAMES = f"allowed: plain relative names of at most {MAX_NAME_BYTES} bytes"


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
    renormalizes: bool = False  # probability is redistributed among the tokens that are allowed
    generation: GenerationDefaults = field(default_factory=GenerationDefaults)
    graphs: Graphs = field(default_factory=Graphs)
    tools: dict[str, str] = field(default_factory=dict)  # tool -> version, of those that wrote the bundle
    verification: dict[str, Any] = field(default_factory=dict)  # measurements of the export
    architecture: dict[str, Any] = field(default_factory=dict)  # for people: the model's type, sizes and variants
    licence: str = ""  # of the weights, as their model card states it
    any_to_any: tuple[Language, ...] = ()  # each is translated into every other one
    is_prose: bool = True  # what callers send; otherwise texts are neither cut, searched nor mended: codes, formulas
    schema_version: int = SCHEMA_VERSION

    def pairs(self) -> Iterator[LanguagePair]:
        """Yield every direction that the model translates; for 200 languages that is 40,000."""
        return directions(self.languages, self.any_to_any)

    @property
    def is_fused(self) -> bool:
        return self.precision == "int8"

    @property
    def records_attention(self) -> bool:
        """Return whether the decoder records what an alignment needs; otherwise the `alignment` graph computes it."""
        return self.is_fused and bool(self.graphs.alignment)

    @property
    def longest_target_prefix(self) -> int:
        return max(len(each.target_prefix_ids) for each in self._with_prefixes)

    @property
    def first_pair(self) -> LanguagePair:
        return next(self.pairs())

    def source_ids(self, piece_ids: Iterable[int], pair: LanguagePair) -> tuple[int, ...]:
        return self.tokenizer.source_ids(piece_ids, pair)

    def without_end(self, output_ids: tuple[int, ...]) -> tuple[int, ...]:
        return output_ids[:-1] if self._is_ended(output_ids) else output_ids

    def golden_limit(self, golden: GoldenPair) -> int:
        return self.limits.max_output_tokens if self._is_ended(golden.output_ids) else len(golden.output_ids)

    def _is_ended(self, output_ids: tuple[int, ...]) -> bool:
        return output_ids[-1:] == (self.tokenizer.eos_id,)

    def save(self, directory: Path) -> None:
        text = json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False)
        (directory / MANIFEST_NAME).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, directory: Path) -> "Manifest":
        """Read and check `manifest.json`; the other files are not touched."""
        path = directory / MANIFEST_NAME
        try:
            with open_regular(path) as file:
                data = file.read(MAX_MANIFEST_BYTES + 1)
            if len(data) > MAX_MANIFEST_BYTES:
                raise BundleError(f"{path} is larger than {MAX_MANIFEST_BYTES} bytes; this is not a bundle's manifest.")
            document = json.loads(data.decode())
        except FileNotFoundError:
            raise BundleError(
                f"{directory} holds no {MANIFEST_NAME}: it is not a bundle. 'python -m export convert' writes bundles."
            ) from None
        except OSError as error:
            raise BundleError(f"{path} can't be read: {error.strerror or one_line(error)}.") from error
        except (ValueError, RecursionError) as error:  # ValueError: no UTF-8, no JSON, too many digits
            raise BundleError(f"{path} can't be read: {one_line(error)}.") from error
        return cls.from_document(document, str(path))

    @classmethod
    def from_document(cls, document: Any, where: str) -> "Manifest":
        """Build a manifest from parsed JSON; `where` names it in errors. Unknown fields are ignored."""
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
        manifest = typing.cast(Manifest, build(cls, document, where, "manifest"))
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
                raise BundleError(f"{where}: {field_name} has {entries} entries; allowed: {most}.")
        names = {"name": [self.name], "precision": [self.precision], "tokenizer.kind": [self.tokenizer.kind]}
        names |= {"any_to_any": [language.code for language in self.any_to_any]}
        names["languages"] = [
            code for pair in self.languages for code in (pair.source_language_code, pair.target_language_code)
        ]
        for field_name, values in names.items():
            for value in values:
                if not is_name(value):
                    raise BundleError(
                        f"{where}: {field_name} has {shown(value)}; allowed: 1 to {MAX_NAME_BYTES} printable "
                        "bytes of UTF-8."
                    )
        if not self.golden:
            raise BundleError(f"{where}: golden is empty; the self-test needs at least one pair.")

    def _check_files(self, where: str) -> None:
        named = {*self.graphs.files}
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
        model = self.model
        most_state = _MOST["model.num_heads"] * _MOST["model.head_size"]
        bounds = {name: (1, most) for name, most in _MOST.items()}
        bounds |= {"model.state_size": (0, most_state), "model.shortlist_size": (0, model.vocabulary_size)}
        for name, (least, most) in bounds.items():
            part, _, field_name = name.partition(".")
            value = getattr(getattr(self, part), field_name)
            if not least <= value <= most:
                raise BundleError(f"{where}: {name} is {shown(value)}; expected a number from {least} to {most}.")
        if model.state_size % STATE_MULTIPLE:
            raise BundleError(
                f"{where}: model.state_size is {model.state_size}; expected a multiple of {STATE_MULTIPLE}."
            )
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
        further = OPTIONS.keys() - hints_of(GenerationDefaults).keys() - _NO_DEFAULTS
        for name, value in self.generation.options.items():
            if name not in further:
                raise BundleError(
                    f"{where}: generation.options has {shown(name)}; this service knows {listed(sorted(further))}. "
                    "Upgrade the service or export the bundle again."
                )
            option = OPTIONS[name]
            high = self.limits.max_output_tokens if option.high is None else option.high
            is_of_kind = isinstance(value, (int, float) if option.kind is float else option.kind)
            if not is_of_kind or not option.permits(value, high):
                raise BundleError(
                    f"{where}: generation.options[{name}] is {shown(value)}; expected a number from "
                    f"{option.allowed(high)}."
                )

    @property
    def _with_prefixes(self) -> list[LanguagePair | Language]:
        return [*self.languages, *self.any_to_any]

    def _token_ids(self) -> Iterator[tuple[str, int]]:
        tokenizer = self.tokenizer
        for name in ("pad_id", "eos_id", "unk_id", "decoder_start_id", "source_eos_id", "source_unk_id"):
            if (token_id := getattr(tokenizer, name)) is not None:
                yield f"tokenizer.{name}", token_id
        yield from (("tokenizer.special_tokens", token_id) for token_id in tokenizer.special_tokens.values())
        yield from (("suppressed_ids", token_id) for token_id in self.suppressed_ids)
        for golden in self.golden:
            yield from (("golden", token_id) for token_id in (*golden.source_ids, *golden.output_ids))
        for each in self._with_prefixes:
            yield from (("a prefix", token_id) for token_id in (*each.source_prefix_ids, *each.target_prefix_ids))
            further = each.into_prefix_ids if isinstance(each, Language) else each.source_suffix_ids
            yield from (("a prefix or suffix", token_id) for token_id in further)
