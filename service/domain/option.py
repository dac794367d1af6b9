"""The definition of a decoding option; `domain.options` has the table of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Option:
    """The definition of one option.

    `name` is the name of the protobuf field and, unless it `shapes_answer`, of KServe's parameter; the flag has
    hyphens. `low` and `high` are the bounds, `None` for a boolean; `low` itself is not allowed if it `excludes_low`. If
    `high` depends on the model, `high_words` describes it. `default` is the value for requests without the option; a
    string describes where that value comes from.

    An option that `changes_scores` does so before a token is chosen, which takes a graph that returns the scores of the
    whole vocabulary. `settings` are the names of transformers' generation settings with the option's meaning, of which
    the first that is set counts, each with the number of tokens that it counts and the option does not. If
    `counts_output`, the settings also count the model's own prefix, such as a language's token. Options `in_rows` are
    fields of the rows that the search in C++ reads.
    """

    name: str
    kind: type[bool] | type[int] | type[float]
    help: str
    default: float | str
    low: float | None = None
    high: float | None = None
    high_words: str = ""
    excludes_low: bool = False
    needs_sampling: bool = False
    shapes_answer: bool = False
    changes_scores: bool = False
    settings: tuple[tuple[str, int], ...] = ()
    counts_output: bool = False
    in_rows: bool = False

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    def permits(self, value: float, high: float | None) -> bool:
        if self.low is None or high is None:
            return True
        return self.low <= value <= high and not (self.excludes_low and value == self.low)  # false for NaN

    def allowed(self, high: float | None = None) -> str:
        """Return the bounds in words, such as `1 to 8`; `high` is given if it depends on the request."""
        if self.low is None:
            return "true or false"
        high = self.high if high is None else high
        most = self.high_words if high is None else _number(high)
        return f"{'above ' if self.excludes_low else ''}{_number(self.low)} to {most}"

    @property
    def default_words(self) -> str:
        return self.default if isinstance(self.default, str) else _number(self.default)


def _number(value: float) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value) if value == int(value) else value)


def define(help: str, default: float | str, **rest: Any) -> Mapping[str, Any]:  # noqa: A002
    """Return the metadata of a dataclass field that is an option: arguments of `Option`."""
    return {"help": help, "default": default, **rest}
