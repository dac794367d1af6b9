"""The parts of `manifest.json`: sizes, graphs, tokenizer, languages, limits, defaults and golden pairs."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

STATE_MULTIPLE = 8  # of the width of a state: on a device it is copied in so many equal parts


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Sizes that determine the layout of the service's buffers.

    Decoder layers keep keys and values, or a state of `state_size` if not 0. `shortlist_size`: the most tokens to
    choose a translation from; 0: all.
    """

    num_decoder_layers: int
    num_heads: int
    head_size: int
    vocabulary_size: int
    state_size: int = 0
    shortlist_size: int = 0

    @property
    def is_recurrent(self) -> bool:
        return self.state_size > 0

    @property
    def has_shortlists(self) -> bool:
        return self.shortlist_size > 0


@dataclass(frozen=True, slots=True)
class Graphs:
    """File names of the graphs, relative to the bundle; fused graphs (`service.bundle.fused_io`) if it is int8.

    `alignment` is empty if there are no alignments. A plain graph outputs the cross-attention of the decoder layer
    `alignment_layer`, and reads keys and values of the layers below. A fused one is the decoder, which records
    attention; `alignment_reads` says whether at the step that reads a token, or at the one that predicts it.
    """

    encoder: str = "encoder.onnx"
    decoder_step: str = "decoder_step.onnx"
    alignment: str = ""
    alignment_layer: int = 0
    alignment_reads: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name in (self.encoder, self.decoder_step, self.alignment) if name))


@dataclass(frozen=True, slots=True)
class TokenizerSpec:
    """The kind and files of the tokenizer, and the model's special token ids.

    The kinds are those of `service.text.tokenizers`; files that a kind does not use are empty. `target_file` and
    `target_vocabulary_file` are for models whose target tokenizer differs from the source's. `reserved_symbols` are
    pieces that training has shown to be copied unchanged on both sides: placeholders. `special_tokens` maps the text of
    each special token to its id, if the files lack them (kinds "marian", "m2m100", "indictrans2"); with
    `cleans_up_spaces`, spaces before punctuation are removed from translations.
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
    source_unk_id: int | None = None  # None: same as `unk_id`, which is the target's

    @property
    def files(self) -> tuple[str, ...]:
        named = (self.file, self.target_file, self.vocabulary_file, self.target_vocabulary_file)
        return tuple(name for name in named if name)

    def source_ids(self, piece_ids: Iterable[int], pair: "LanguagePair") -> tuple[int, ...]:
        """Return the encoder's input: the pair's prefix, a text's pieces, end-of-sentence id, the pair's suffix."""
        eos_id = self.eos_id if self.source_eos_id is None else self.source_eos_id
        end = (eos_id,) if self.adds_source_eos else ()
        return (*pair.source_prefix_ids, *piece_ids, *end, *pair.source_suffix_ids)


@dataclass(frozen=True, slots=True)
class LanguagePair:
    """One direction that a model translates; its ids precede a source, a translation, or follow a source's end."""

    source_language_code: str
    target_language_code: str
    source_prefix_ids: tuple[int, ...] = ()
    target_prefix_ids: tuple[int, ...] = ()
    source_suffix_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Language:
    """A language of a model that translates each of its languages into every other one.

    `source_prefix_ids` precede a text in it, `target_prefix_ids` a translation; `into_prefix_ids` a text to be
    translated into it, after its own.
    """

    code: str
    source_prefix_ids: tuple[int, ...] = ()
    target_prefix_ids: tuple[int, ...] = ()
    into_prefix_ids: tuple[int, ...] = ()

    def to(self, target: "Language") -> LanguagePair:
        source_prefix_ids = (*self.source_prefix_ids, *target.into_prefix_ids)
        return LanguagePair(self.code, target.code, source_prefix_ids, target.target_prefix_ids)


def directions(languages: Iterable[LanguagePair], any_to_any: Iterable[Language]) -> Iterator[LanguagePair]:
    """Yield the pairs themselves, and those from each of `any_to_any` into every other one."""
    yield from languages
    yield from (source.to(target) for source, target in itertools.permutations(any_to_any, 2))


@dataclass(frozen=True, slots=True)
class Limits:
    """Maximum tokens per sequence, special tokens included."""

    max_source_tokens: int
    max_output_tokens: int


@dataclass(frozen=True, slots=True)
class GenerationDefaults:
    """Defaults for requests that set no options; `stops_early`, `narrows` and `forces_end` are the model's in any case.

    `options` are the checkpoint's values for other options of the table in `service.domain.options`, by name.
    """

    beam_size: int = 1
    length_penalty: float = 1.0
    num_hypotheses: int = 1
    stops_early: bool = False
    narrows: bool = False
    forces_end: bool = False
    options: dict[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class GoldenPair:
    """A sentence and the greedy token ids that the exported model produced for it; the service's self-test.

    `output_ids` have no `decoder_start_id` and no prefix, and end with `eos_id` unless the output was cut off.
    """

    source_language_code: str
    target_language_code: str
    text: str
    source_ids: tuple[int, ...]
    output_ids: tuple[int, ...]
    translation: str
