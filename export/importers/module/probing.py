"""The functions of a traced module's parts, found by running them on chosen vectors, one for each token."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, get_args

import torch
from torch import Tensor

from export.architecture.config import Activation
from export.architecture.layers import ACTIVATIONS
from export.importers.module.trace import Trace

BATCH, NUM_SOURCE, NUM_TARGET = 7, 11, 13  # primes, by which the axes of values are told from others
_TOLERANCE = 2e-4  # of the largest value: float32, summed in other orders
_FACTORS = 1e3, 1e-3, 1e-4  # of inputs: a norm's epsilon does not matter, does, and does more


class Affine(NamedTuple):
    """y = x W^T + b: (N, K) and (N,)."""

    weight: Tensor
    bias: Tensor


@dataclass(frozen=True, slots=True)
class Norm:
    """gain (x - mean) / sqrt(variance + epsilon) + bias; without mean and bias if it `is_rms`.

    If epsilon `is_outside` the root, it is added to the standard deviation.
    """

    gain: Tensor
    bias: Tensor
    epsilon: float
    is_rms: bool
    is_outside: bool


@dataclass(frozen=True, slots=True)
class _Layout:
    """The layout of a value by tokens: split into axes of which the first two in `order` are batch and length."""

    shape: tuple[int, ...]
    split: tuple[int, ...]
    order: tuple[int, ...]

    def tokens(self, value: Tensor) -> Tensor:
        """Return (B, L, ...)."""
        return value.reshape(self.split).permute(self.order)

    def value(self, tokens: Tensor) -> Tensor:
        back = sorted(range(len(self.order)), key=self.order.__getitem__)
        return tokens.reshape([self.split[axis] for axis in self.order]).permute(back).reshape(self.shape)


class Probe:
    """Runs parts of a trace on (B, S) and (B, T) tokens. A part maps each token's vector, wherever the token is."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._random = torch.Generator().manual_seed(0)
        self._layouts: dict[int, _Layout] = {}
        self._others: dict[int, _Layout] = {}  # as good as those that are taken first

    def length(self, number: int) -> int:
        """Return the number of tokens of the stack that a value is in."""
        return NUM_TARGET if self.trace.targets in self.trace.dependent[number] else NUM_SOURCE

    def tokens(self, number: int) -> Tensor:
        return self.layout(number).tokens(self.trace.values[number])

    def width(self, number: int) -> int:
        return self.tokens(number).flatten(2).shape[2]

    def apply(self, first: int, last: int, tokens: Tensor, zeros: Sequence[int] = ()) -> Tensor:
        """Map (B, L, K) for the value `first` to (B, L, ...) of `last`, where other values are `zeros`."""
        given = {each: torch.zeros_like(self.trace.values[each]) for each in zeros}
        # Laid out in memory as it was, which views depend on.
        given[first] = torch.empty_like(self.trace.values[first]).copy_(self.layout(first).value(tokens))
        return self.layout(last).tokens(self.trace.run(given, last))

    def random(self, number: int) -> Tensor:
        return torch.randn(BATCH, self.length(number), self.width(number), generator=self._random)

    def is_same(self, first: int, last: int) -> bool:
        one, other = (self.tokens(each).flatten(2) for each in (first, last))
        return one.shape == other.shape and torch.equal(one, other)

    def is_affine(self, first: int, last: int, zeros: Sequence[int] = ()) -> bool:
        if self._is_affine(first, last, zeros):
            return True
        self._layouts |= {number: self._others[number] for number in (first, last) if number in self._others}
        return bool({first, last} & self._others.keys()) and self._is_affine(first, last, zeros)

    def _is_affine(self, first: int, last: int, zeros: Sequence[int]) -> bool:
        one, other = self.random(first), self.random(first)
        at_zero, at_one, at_other, at_sum = (
            self.apply(first, last, each, zeros) for each in (one * 0.0, one, other, one + other)
        )
        if not _close(at_sum + at_zero, at_one + at_other):
            return False
        order = torch.randperm(BATCH * one.shape[1], generator=self._random)
        moved = self.apply(first, last, one.flatten(0, 1)[order].reshape(one.shape), zeros)
        return _close(moved.flatten(0, 1), at_one.flatten(0, 1)[order])

    def affine(self, first: int, last: int, zeros: Sequence[int] = ()) -> Affine:
        """Return the map between two values of which `is_affine` is true, up to a rounding of each weight."""
        width, per_run = self.width(first), BATCH * self.length(first)
        origin = torch.zeros(BATCH, self.length(first), width)
        bias = self.apply(first, last, origin, zeros)[0, 0].flatten().float()
        columns = []
        for start in range(0, width, per_run):
            rows = torch.eye(per_run, width) if start == 0 else torch.eye(start + per_run, width)[start:]
            outputs = self.apply(first, last, rows.reshape(origin.shape), zeros).flatten(0, 1).flatten(1)
            columns.append(outputs[: width - start].float() - bias)
        return Affine(torch.cat(columns).T.contiguous(), bias)

    def norm(self, first: int, last: int, num_parts: int = 1) -> Norm | None:
        """Return the layer norm between two values, or that of their equal parts, or `None` if it is none."""
        if not (self.has_layout(first) and self.has_layout(last)) or self.width(first) != self.width(last):
            return None
        given = self.random(first)
        x = given.reshape(len(given), -1, self.width(first) // num_parts)
        found = (self.apply(first, last, given * factor).reshape(x.shape).float() for factor in _FACTORS)
        large = next(found)  # most parts are none by this alone
        for is_rms in (True, False):
            centered = x if is_rms else x - x.mean(-1, keepdim=True)
            variance = centered.square().mean(-1, keepdim=True)
            unit = centered * variance.rsqrt()
            y_mean, x_mean = (each.mean((0, 1)) * (not is_rms) for each in (large, unit))
            gain = ((unit - x_mean) * (large - y_mean)).sum((0, 1)) / (unit - x_mean).square().sum((0, 1))
            bias = y_mean - gain * x_mean
            if _close(unit * gain + bias, large, 2e-3):
                return self._with_epsilon(unit, variance, [large, *found], gain, bias, is_rms)
        return None

    def _with_epsilon(
        self,
        unit: Tensor,
        variance: Tensor,
        found: Sequence[Tensor],
        gain: Tensor,
        bias: Tensor,
        is_rms: bool,
    ) -> Norm | None:
        """Fit epsilon to outputs for small inputs, inside or outside the root, and the gain to it."""
        best: tuple[float, Norm] | None = None
        fitted = unit * gain
        ratio = ((found[1] - bias) * fitted).sum(-1, keepdim=True) / fitted.square().sum(-1, keepdim=True)
        for is_outside in (False, True):
            share, size, factor = ratio**2, variance, _FACTORS[1] ** 2
            if is_outside:
                share, size, factor = ratio, variance.sqrt(), _FACTORS[1]
            epsilon = rounded(float((factor * size * (1.0 - share) / share.clamp(min=1e-12)).median()))
            divisors = [_divisor(variance * each**2, epsilon, is_outside) / each for each in _FACTORS]
            own = gain * (divisors[0] / variance.sqrt()).mean()
            errors = [
                float((unit * variance.sqrt() / divisor * own + bias - each).abs().max())
                for divisor, each in zip(divisors, found, strict=True)
            ]
            if best is None or sum(errors) < best[0]:
                best = sum(errors), Norm(own, bias, epsilon, is_rms, is_outside)
        assert best is not None
        return best[1] if best[0] < 20 * _TOLERANCE * float(found[0].abs().max()) else None

    def activation(self, first: int, last: int) -> Activation | None:
        """Return the activation between two values, or `None` if it is none that we have."""
        x = 3.0 * self.random(first)
        found = self.apply(first, last, x).flatten(2)
        errors = {name: float((ACTIVATIONS[name](x) - found).abs().max()) for name in get_args(Activation)}
        best = min(errors, key=errors.__getitem__)  # the two that are called gelu differ by 0.0005
        return best if errors[best] < _TOLERANCE else None

    def has_layout(self, number: int) -> bool:
        try:
            self.layout(number)
        except ValueError:
            return False
        return True

    def layout(self, number: int) -> _Layout:
        """Return how a value holds tokens; raise `ValueError` if its shape does not show that."""
        if number not in self._layouts:
            self._layouts[number] = self._layout(number)
        return self._layouts[number]

    def _layout(self, number: int) -> _Layout:
        shape, length = tuple(self.trace.values[number].shape), self.length(number)
        sizes: tuple[int, ...] = (BATCH,)
        together = BATCH * length
        if together in shape:
            axis = shape.index(together)
            sizes = (BATCH, length) if self._is_first(number, axis, length) else (length, BATCH)
        elif BATCH in shape:
            axis = shape.index(BATCH)
        else:  # heads, or several parts, are beside the batch
            axis = next((each for each, size in enumerate(shape) if size % BATCH == 0 and size > 0), -1)
            if axis < 0:
                raise ValueError(f"a value of shape {shape} has no axis of {BATCH} rows")
            others = shape[axis] // BATCH
            sizes = (BATCH, others) if self._is_first(number, axis, others) else (others, BATCH)
        split = [*shape[:axis], *sizes, *shape[axis + 1 :]]
        if length in split:
            return _laid_out(shape, split, length)
        # Queries that share keys are beside each other, before or behind the tokens.
        several = next((place for place, size in enumerate(split) if size % length == 0 and size > 0), -1)
        if several < 0:
            raise ValueError(
                f"a value of shape {shape} has no vector for each of {length} tokens; learned vectors beside "
                "them, or joined tokens, are not supported"
            )
        num = split[several] // length
        before, behind = (
            _laid_out(shape, [*split[:several], *sizes, *split[several + 1 :]], length)
            for sizes in ((num, length), (length, num))
        )
        self._others[number] = behind
        return before

    def _is_first(self, number: int, axis: int, others: int) -> bool:
        """Return whether the rows of the batch are the slower ones on an axis that has something else, too."""
        changed = (self._with_other_row[number] != self.trace.values[number]).movedim(axis, 0).flatten(1).any(1)
        return bool(changed[:others].all()) and not bool(changed[others:].any())

    @cached_property
    def _with_other_row(self) -> Mapping[int, Tensor]:
        """Return all values of a run in which the first row has other tokens."""
        trace = self.trace
        given = {each: trace.values[each].clone() for each in (trace.sources, trace.targets)}
        for ids in given.values():
            ids[0] = ids[1]
        return trace.run_all(given)


def _laid_out(shape: tuple[int, ...], split: list[int], length: int) -> _Layout:
    if split.count(length) != 1 or split.count(BATCH) != 1:
        raise ValueError(f"a value of shape {shape} has no axes of {BATCH} rows and {length} tokens, or several")
    batch, tokens = split.index(BATCH), split.index(length)
    others = [each for each in range(len(split)) if each not in (batch, tokens)]
    return _Layout(shape, tuple(split), (batch, tokens, *others))


def _close(one: Tensor, other: Tensor, tolerance: float = _TOLERANCE) -> bool:
    if one.shape != other.shape:
        return False
    return float((one - other).abs().max()) <= tolerance * max(float(other.abs().max()), 1e-6)


def _divisor(variance: Tensor, epsilon: float, is_outside: bool) -> Tensor:
    return variance.sqrt() + epsilon if is_outside else (variance + epsilon).sqrt()


def rounded(number: float) -> float:
    """Return a number with one digit, as people choose them, or what is as good as 0 here."""
    if number < 1e-11:
        return 1e-12
    one_digit = float(f"{number:.0e}")
    return one_digit if abs(one_digit / number - 1.0) < 0.01 else number
