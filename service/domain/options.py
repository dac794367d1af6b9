"""The one table of decoding options: the fields of `DecodingOptions` that have an `Option`.

Everything that accepts, checks, maps or documents a decoding option reads `OPTIONS`: range checks, the command line,
protobuf, KServe's parameters, the exporter's import of generation settings and the table in `docs/requests.md`. To add
one, add a field here, fields of the same name and type to `dragoman.v1.DecodingOptions` and to the client's `Options`,
and the code that uses it; tests compare the other two with this table.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

from service.domain.errors import InvalidRequest, Path
from service.domain.option import Option as Option
from service.domain.option import define

MAX_BEAM_SIZE: Final = 8
MAX_TOP_K: Final = 64
RATIO_ALLOWANCE: Final = 16  # tokens that `max_length_ratio` grants to any source: short ones may grow by more
LONGEST_REPEAT: Final = 16  # tokens in the longest run whose repetitions `max_repeats` counts


_MODELS: Final = "the model's"


@dataclass(frozen=True, slots=True)
class DecodingOptions:
    """How to decode, fully resolved; the defaults here turn off every option that can be turned off.

    `length_penalty`: a hypothesis' summed log-probability is divided by its length to that power, as in transformers'
    `generate`. `max_output_tokens` includes the end-of-sentence token.

    A beam search with `stops_early` ends as soon as `beam_size` hypotheses are finished; otherwise it continues while
    the best running one may beat them. One that `narrows`, as Marian's, goes on with one hypothesis fewer for each that
    is finished, and ends when none is left. A hypothesis that reaches `max_output_tokens` is cut there, or, with
    `forces_end`, ended at no cost with the end-of-sentence token, which then counts as one more. All three belong
    to the model, not to the caller: two are transformers' `early_stopping` and `forced_eos_token_id`.

    `temperature` above 0 means sampling, from the `top_k` most probable tokens and of these the fewest that have
    `top_p` of the probability; then `beam_size` is 1, hypotheses are independent samples, and the same `seed`
    reproduces them. `seed` is `None` for a random one.

    Two guards are off at 0. With `max_length_ratio`, the output has at most that many tokens per source token, plus
    `RATIO_ALLOWANCE`; a hypothesis that reaches this is cut there with `FinishReason.RATIO`. With `max_repeats`, no run
    of up to `LONGEST_REPEAT` tokens occurs more often than that in a row, unless one does in the source: after one
    repetition too many, that repetition is removed and the hypothesis ends with `FinishReason.REPETITION`. In beam
    search, such a hypothesis is dropped in favour of others, and returned only if too few others end.

    `repetition_penalty`, `no_repeat_ngram_size` and `min_output_tokens` change scores before a token is chosen, as
    `kernels/src/search/processors.cpp` defines; scores of hypotheses are made of the changed ones. The first two
    consider the whole output so far, with the start token and the model's prefix, the last one counts what
    `max_output_tokens` counts except the end-of-sentence token.

    `check_numbers` is about what precedes and follows decoding, as `return_scores` is; the engine ignores both.
    """

    beam_size: int = field(
        metadata=define(
            "Hypotheses kept alive while decoding; 1 is greedy search and fastest.", _MODELS, low=1, high=MAX_BEAM_SIZE
        )
    )
    length_penalty: float = field(
        metadata=define(
            "Divide a hypothesis' log-probability by its length to this power: above 0 favours longer translations. "
            "Has no effect on greedy search.",
            _MODELS,
            low=-10.0,
            high=10.0,
            in_rows=True,
        )
    )
    num_hypotheses: int = field(
        metadata=define(
            "Candidates to return, best first; at most the beam size, which is raised to this if it is not "
            "given. With sampling, this many independent samples, in no order.",
            _MODELS,
            low=1,
            high=MAX_BEAM_SIZE,
            shapes_answer=True,
        )
    )
    max_output_tokens: int = field(
        metadata=define(
            "Maximum tokens to generate per segment; a translation that reaches it ends with the finish reason LENGTH.",
            "the model's limit",
            low=1,
            high_words="the model's limit",
        )
    )
    return_scores: bool = field(
        default=False, metadata=define("Return each hypothesis' score.", False, shapes_answer=True)
    )
    temperature: float = field(
        default=0.0,
        metadata=define(
            "Above 0, sample: draw each token by its probability to the power of 1 / temperature. 0 searches instead.",
            0.0,
            low=0.0,
            high=10.0,
            in_rows=True,
        ),
    )
    top_k: int = field(
        default=MAX_TOP_K,
        metadata=define(
            "Draw from this many of the most probable tokens only.",
            MAX_TOP_K,
            low=1,
            high=MAX_TOP_K,
            needs_sampling=True,
            in_rows=True,
        ),
    )
    top_p: float = field(
        default=1.0,
        metadata=define(
            "Draw from the fewest of the top_k tokens that hold this share of the probability.",
            1.0,
            low=0.0,
            high=1.0,
            excludes_low=True,
            needs_sampling=True,
            in_rows=True,
        ),
    )
    seed: int | None = field(
        default=None,
        metadata=define(
            "With sampling, draw the same samples again for the same seed, text, options and model.",
            "random",
            kind=int,
            low=0,
            high=2**64 - 1,
        ),
    )
    stops_early: bool = False
    narrows: bool = False
    forces_end: bool = False
    max_length_ratio: float = field(
        default=0.0,
        metadata=define(
            f"End a segment's output at this many tokens per token of its source, plus {RATIO_ALLOWANCE}, "
            "with the finish reason RATIO. 0 allows any length.",
            3.0,
            low=0.0,
            high=100.0,
        ),
    )
    max_repeats: int = field(
        default=0,
        metadata=define(
            f"End an output that repeats a run of up to {LONGEST_REPEAT} tokens more often in a row than "
            "this, and than the source, with the finish reason REPETITION. 0 allows any number.",
            10,
            low=0,
            high=100,
        ),
    )
    repetition_penalty: float = field(
        default=1.0,
        metadata=define(
            "Above 1, make tokens that the output already has less likely, below 1, more likely: a positive score is "
            "divided by this, a negative one multiplied, as in transformers.",
            1.0,
            low=0.0,
            high=10.0,
            excludes_low=True,
            changes_scores=True,
            settings=(("repetition_penalty", 0),),
            in_rows=True,
        ),
    )
    no_repeat_ngram_size: int = field(
        default=0,
        metadata=define(
            "No run of this many tokens may occur twice in an output. 0 allows any.",
            0,
            low=0,
            high=100,
            changes_scores=True,
            settings=(("no_repeat_ngram_size", 0),),
            in_rows=True,
        ),
    )
    min_output_tokens: int = field(
        default=0,
        metadata=define(
            "Minimum tokens to generate per segment before it may end, not counting the end itself.",
            0,
            low=0,
            high_words="the model's limit",
            changes_scores=True,
            settings=(("min_new_tokens", 0), ("min_length", 1)),
            counts_output=True,
            in_rows=True,
        ),
    )
    check_numbers: bool = field(
        default=True,
        metadata=define(
            "Keep identifiers as they are and compare the numbers of source and translation: a segment where one was "
            "changed is corrected or translated again, or flagged.",
            True,
        ),
    )

    @property
    def changes_scores(self) -> bool:
        return _changing(self) != _UNCHANGED

    @property
    def is_sampled(self) -> bool:
        return self.temperature > 0.0


OPTIONS: Final[Mapping[str, Option]] = MappingProxyType(
    {
        each.name: Option(**{"name": each.name, "kind": each.type, **each.metadata})
        for each in fields(DecodingOptions)
        if each.metadata
    }
)

ROW_OPTIONS: Final = tuple(option.name for option in OPTIONS.values() if option.in_rows)

# Values of options that are the same for every model. They end loops and do not affect ordinary sentences.
DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType(
    {name: option.default for name, option in OPTIONS.items() if not isinstance(option.default, str)}
)

_CHANGING: Final = tuple(option.name for option in OPTIONS.values() if option.changes_scores)
_changing = attrgetter(*_CHANGING)
_UNCHANGED: Final = tuple(OPTIONS[name].default for name in _CHANGING)
_BOUNDED = tuple(option for option in OPTIONS.values() if option.low is not None)
_FOR_SAMPLING = tuple(option.name for option in OPTIONS.values() if option.needs_sampling)


@dataclass(frozen=True, slots=True, init=False)
class RequestedOptions:
    """The options that a caller set, by name; the others take the model's defaults."""

    chosen: Mapping[str, Any] = field(hash=False)

    def __init__(self, **chosen: float | None) -> None:
        """Take values for names in `OPTIONS`, `None` if not set; raise `TypeError` for another name."""
        if unknown := chosen.keys() - OPTIONS.keys():
            raise TypeError(f"no decoding option is called {', '.join(sorted(unknown))}; known: {', '.join(OPTIONS)}")
        object.__setattr__(self, "chosen", {name: value for name, value in chosen.items() if value is not None})

    def resolve(self, defaults: DecodingOptions, *, can_change_scores: bool = True) -> DecodingOptions:
        """Return the model's `defaults` overridden by the caller's options; `can_change_scores` tells if the model can.

        `defaults.max_output_tokens` is also the model's limit. Asking for more hypotheses than the default beam widens
        it, unless the caller set one. A temperature means sampling without a beam.

        Raise `InvalidRequest` if an option is out of range or not served by the model's bundle, if `num_hypotheses`
        exceeds the requested beam, or if a beam is combined with sampling or options of sampling are set without it.
        """
        chosen = self.chosen
        values = dict(chosen)
        is_sampled = chosen.get("temperature", defaults.temperature) > 0.0
        if is_sampled and "beam_size" not in chosen:
            values["beam_size"] = 1
            values.setdefault("num_hypotheses", 1)
        elif "num_hypotheses" in chosen and "beam_size" not in chosen:
            values["beam_size"] = max(defaults.beam_size, min(chosen["num_hypotheses"], MAX_BEAM_SIZE))
        if "beam_size" in chosen and "num_hypotheses" not in chosen:
            values["num_hypotheses"] = min(defaults.num_hypotheses, max(chosen["beam_size"], 1))
        options = replace(defaults, **values)
        _check_ranges(options, defaults.max_output_tokens)
        if is_sampled and options.beam_size > 1:
            raise InvalidRequest(
                "{path} is {beam_size} and {other} {temperature}",
                Path("options", "beam_size"),
                beam_size=options.beam_size,
                other=Path("options", "temperature"),
                temperature=options.temperature,
                advice="sampling takes beam_size 1, so leave one of them out",
            )
        if not is_sampled and (alone := [name for name in _FOR_SAMPLING if name in chosen]):
            raise InvalidRequest(
                "{path} is {value} without sampling, which takes {other} above 0",
                Path("options", alone[0]),
                value=chosen[alone[0]],
                other=Path("options", "temperature"),
                advice="set both, or neither",
            )
        if options.changes_scores and not can_change_scores:
            name = next(name for name in _CHANGING if getattr(options, name) != OPTIONS[name].default)
            raise InvalidRequest(
                "{path} is {value}, which needs all scores, and the model's bundle returns only the best",
                Path("options", name),
                value=getattr(options, name),
                advice="leave it out, or export the bundle again with this version",
            )
        return options


def _check_ranges(options: DecodingOptions, max_output_tokens: int) -> None:
    highs = {
        "max_output_tokens": max_output_tokens,
        "min_output_tokens": max_output_tokens,
        "num_hypotheses": MAX_BEAM_SIZE if options.is_sampled else options.beam_size,
    }
    for option in _BOUNDED:
        value = getattr(options, option.name)
        high = highs.get(option.name, option.high)
        if value is not None and not option.permits(value, high):
            path = Path("options", option.name)
            raise InvalidRequest("{path} is {value}", path, value=value, allowed=option.allowed(high))


NO_OPTIONS: Final = RequestedOptions()
