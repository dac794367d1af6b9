"""Reads a traced module as our model: every choice and weight is found from what a part computes, and checked by it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import mode
from typing import Any, NamedTuple, get_args

import torch
from torch import Tensor

from export.architecture import ModelConfig, PositionConfig
from export.architecture.config import Activation
from export.architecture.names import DECODER_TABLE, ENCODER_TABLE, PROJECTION
from export.architecture.stored import StoredModel
from export.importers.assembly import assemble
from export.importers.inferred import LEARNED, infer_config, leave_out_shared
from export.importers.module.positions import Positions, find_positions
from export.importers.module.probing import BATCH, NUM_TARGET, Affine, Norm, Probe
from export.importers.module.projections import find_projection
from export.importers.module.structure import SUBLAYERS, Core, NotReadError, Residual, Stack, find_stacks, same_as
from export.importers.module.trace import Trace
from export.importers.state_dict.foldings import Heads, grouped
from export.stages import progress

_MASKED = -1e4  # what masks add to scores is below it
_TOLERANCE = 1e-4


class SpecialIds(NamedTuple):
    """Ids of the target, and the id that is masked on both sides."""

    pad_id: int
    eos_id: int
    unk_id: int
    decoder_start_id: int


@dataclass
class _Reading:
    """The findings so far: weights by our names, norms by their places, and the values of each choice."""

    probe: Probe
    weights: dict[str, Tensor] = field(default_factory=dict)
    norms: dict[str, Norm] = field(default_factory=dict)
    choices: dict[str, dict[str, Any]] = field(default_factory=dict)  # of a field, by place

    def choose(self, name: str, place: str, value: Any) -> None:
        self.choices.setdefault(name, {})[place] = value

    def only(self, name: str) -> Any:
        found = self.choices[name]
        first, *others = found.items()
        for place, value in others:
            if value != first[1]:
                raise NotReadError(
                    f"{name} is {first[1]} in {first[0]} and {value} in {place}; one is expected for all"
                )
        return first[1]

    def affine(self, name: str, map_: Affine) -> None:
        self.weights[f"{name}.weight"], self.weights[f"{name}.bias"] = map_


def read(trace: Trace, ids: SpecialIds, most_positions: Sequence[int]) -> StoredModel:
    """Return the model that a trace computes, with so many positions of source and target if it has as many.

    Raise `NotReadError` with the part that is none of ours.
    """
    reading = _Reading(Probe(trace))
    stacks = find_stacks(trace)
    tables = [_embedding(reading, stack, limit) for stack, limit in zip(stacks, most_positions, strict=True)]
    for stack in stacks:
        _stack(reading, stack, stacks[0].output)
    config = _config(reading, stacks, tables, ids)
    problems: list[str] = []
    model = assemble(config, {name: value.contiguous() for name, value in reading.weights.items()}, problems)
    if model is None:
        raise NotReadError("; ".join(problems))
    return model


def _stack(reading: _Reading, stack: Stack, memory: int) -> None:
    kinds = SUBLAYERS[stack.name]
    for index, residual in enumerate(progress(stack.residuals, f"read the {stack.name}")):
        layer, kind = divmod(index, len(kinds))
        name, place = f"{stack.name}.layers.{layer}.{kinds[kind]}", stack.place(index)
        start, dense = _norms_around(reading, residual, f"{name}_residual", place)
        if residual.factor != 1.0 and reading.choices["norm"][place] != "post":
            raise NotReadError(f"{place} multiplies the stream by {residual.factor:g}, and has no norm after the sum")
        if residual.cores:
            _attention(reading, dense, start, memory if residual.reads_memory else start, name, place)
        else:
            _feed_forward(reading, dense, start, name, place)
        # The norm of a x + y is that of x + y / a (Wang et al. 2022, DeepNorm), up to its epsilon.
        for weight in (f"{name}.{part}.{kind}" for part in ("output", "outer") for kind in ("weight", "bias")):
            if weight in reading.weights:
                reading.weights[weight] = reading.weights[weight] / residual.factor
        is_last = index + 1 == len(stack.residuals)
        end = _output(reading, stack) if is_last else stack.residuals[index + 1].stream
        ends = [f"{name}_residual.block_norm"] * (kind + 1 == len(kinds))
        if is_last:
            has_block_norm = f"{stack.name}.layers.0.{kinds[kind]}_residual.block_norm" in reading.norms
            ends = [*ends[:has_block_norm], f"{stack.name}.final_norm"]
        _norms_after(reading, residual, end, f"{name}_residual.norm", ends, place)


def _norms_around(reading: _Reading, residual: Residual, name: str, place: str) -> tuple[int, Residual]:
    """Return what a layer's dense layers read, and the connection whose branch ends with them: without norms."""
    probe, start, branch = reading.probe, residual.stream, residual.branch
    for cut in probe.trace.region(residual.stream, residual.branch).cuts[1:]:
        if (norm := probe.norm(residual.stream, cut)) is not None:
            start, reading.norms[f"{name}.norm"] = cut, norm
    for cut in probe.trace.region(start, residual.branch).cuts[1:-1]:
        if (norm := probe.norm(cut, residual.branch)) is not None:
            branch, reading.norms[f"{name}.output_norm"] = cut, norm
            break
    kind = "post" if start == residual.stream else "pre" if branch == residual.branch else "sandwich"
    if kind == "post" and branch != residual.branch:
        raise NotReadError(f"{place} has a layer norm before its sum, but none before its dense layers")
    reading.choose("norm", place, kind)
    return start, replace(residual, branch=branch)


def _norms_after(reading: _Reading, residual: Residual, end: int, name: str, ends: Sequence[str], place: str) -> None:
    """Read the norms between a sum and the next residual connection, or the stack's end: one of `name`, and `ends`."""
    probe, start = reading.probe, residual.total
    names = [*([] if name in reading.norms else [name]), *ends]
    while not _is_same(probe, start, end):
        fitting = [(cut, norm) for cut in probe.trace.region(start, end).cuts[1:] if (norm := probe.norm(start, cut))]
        if not fitting or not names:
            found = probe.trace.between(start, end)
            raise NotReadError(f"what follows the sum of {place} is not a layer norm and dense layer, but {found}")
        # Of two norms, both together are nearly one, too.
        start, reading.norms[names.pop(0)] = [each for each in fitting if probe.is_affine(fitting[0][0], each[0])][-1]
    if name in names:
        raise NotReadError(f"{place} has a layer norm neither before nor after it")


def _is_same(probe: Probe, one: int, other: int) -> bool:
    return same_as(probe.trace, one) == same_as(probe.trace, other) or probe.is_same(one, other)


def _output(reading: _Reading, stack: Stack) -> int:
    """Return the stack's end: the encoder's output, or what the projection reads, which is stored."""
    if stack.name == "encoder":
        return stack.output
    probe, start = reading.probe, stack.residuals[-1].total
    cuts = probe.trace.region(start, stack.output).cuts
    found = next((cut for cut in cuts if probe.is_affine(cut, stack.output)), None)
    if found is None or found == stack.output:
        raise NotReadError("the logits are not a dense layer's outputs, but of more, such as a copy mechanism")
    reading.affine("projection", probe.affine(found, stack.output))
    return found


def _attention(reading: _Reading, residual: Residual, start: int, memory: int, name: str, place: str) -> None:
    probe, cores = reading.probe, [_oriented(reading.probe, core) for core in residual.cores]
    size = probe.tokens(cores[0].queries).shape[-1]
    ends = [(core.queries, core.keys, core.values) for core in cores]
    for part, first, lasts in zip(
        ("query", "key", "value"), (start, memory, memory), zip(*ends, strict=True), strict=True
    ):
        heads = [find_projection(probe, first, last, size, f"the {part} of {place}") for last in lasts]
        factor = heads[0].factor
        if part == "query":
            factor *= _score_factor(probe, cores[0], size, place) * math.sqrt(size)
            num_heads = sum(len(head.map.bias) for head in heads) // size
            reading.choose(f"{name.split('.')[0]} num_heads", place, num_heads)
        map_ = Affine(*(torch.cat(each) for each in zip(*(head.map for head in heads), strict=True)))
        norm = heads[0].norm
        if norm is not None:
            norm = replace(norm, gain=norm.gain * factor, bias=norm.bias * factor)
            reading.norms[f"{name}.{part}_norm"] = norm
        elif abs(factor - 1.0) > 1e-5:
            map_ = Affine(map_.weight * factor, map_.bias * factor)
        if part != "value" and not residual.reads_memory:
            reading.choose("rotation", f"the {part} of {place}", heads[0].rotation)
        reading.affine(f"{name}.{part}", Affine(*(grouped(each, Heads(num_heads, size)) for each in map_)))
    outputs = []
    for core in cores:
        others = [other.heads for other in cores if other is not core]
        if not probe.is_affine(core.heads, residual.branch, others):
            found = probe.trace.between(core.heads, residual.branch)
            raise NotReadError(f"the output of {place} is no dense layer's, nor the heads side by side, but of {found}")
        outputs.append(probe.affine(core.heads, residual.branch, others))
    reading.affine(f"{name}.output", Affine(torch.cat([each.weight for each in outputs], 1), outputs[0].bias))


def _oriented(probe: Probe, core: Core) -> Core:
    """Return an attention with queries and keys in their places: a key changes the scores of its own token only."""
    if not probe.has_layout(core.keys):
        return core
    last = torch.zeros_like(probe.tokens(core.keys))
    last[:, -1] = 1.0
    without, changed = (
        probe.trace.run(
            {
                core.queries: torch.ones_like(probe.trace.values[core.queries]),
                core.keys: probe.layout(core.keys).value(each),
            },
            core.scores,
        ).movedim(core.axis, -1)
        for each in (last * 0.0, last)
    )
    is_key = not bool(((changed - without)[..., :-1] > 0.0).any())
    return core if is_key else replace(core, queries=core.keys, keys=core.queries)


def _score_factor(probe: Probe, core: Core, size: int, place: str) -> float:
    """Return what products of queries and keys are multiplied by; a mask, and nothing else, may be added to them."""
    queries, keys = (probe.trace.values[each] for each in (core.queries, core.keys))
    length, is_causal = probe.length(core.queries), probe.length(core.keys) == NUM_TARGET

    def scores(value: float) -> Tensor:
        """Return scores (..., T, S) of queries of one value and keys of 1."""
        given = {core.queries: torch.full_like(queries, value), core.keys: torch.ones_like(keys)}
        found = probe.trace.run(given, core.scores).float().movedim(core.axis, -1)
        tokens = -2 if found.shape[-2] % length == 0 else found.shape.index(length)
        each_head: Tensor = found.movedim(tokens, -2).unflatten(-2, (-1, length))
        return each_head

    added, once, twice = (scores(value) for value in (0.0, 1.0, 2.0))
    reads = added > _MASKED
    expected = torch.ones(reads.shape[-2:], dtype=torch.bool)
    expected = expected.tril() if is_causal else expected
    if bool((reads != expected).any()):
        kind = "the tokens up to its own" if is_causal else "all tokens"
        which = "reads more than" if bool((reads > expected).any()) else "does not read"
        raise NotReadError(f"a token in {place} {which} {kind}; check the masks that the model is called with")
    first, second = ((each - added)[reads] / size for each in (once, 0.5 * twice + 0.5 * added))
    factor = float(first.median())
    for is_wrong, what in (
        (not torch.allclose(first, second, rtol=1e-3), "capped, or otherwise not multiples of products"),
        (
            not torch.allclose(first, first.median(), rtol=1e-3),
            "multiplied by more than one number, as by one per head",
        ),
        (bool(added[reads].abs().max() > _TOLERANCE), f"increased by {_added(added, reads)}"),
    ):
        if is_wrong:
            raise NotReadError(f"the scores of {place} are {what}; that is not supported")
    return factor


def _added(added: Tensor, reads: Tensor) -> str:
    """Return what people call the biases (..., T, S) that are added to scores."""
    added = added.masked_fill(~reads, 0.0)
    if not torch.allclose(added[..., 1:, 1:].tril(), added[..., :-1, :-1].tril(), atol=_TOLERANCE):
        return "biases that don't only depend on distance, such as Shaw's"
    is_linear = torch.allclose(added[..., 3:, 0] + added[..., 3:, 2], 2.0 * added[..., 3:, 1], atol=_TOLERANCE)
    return f"biases by distance ({'linear ones, ALiBi' if is_linear else 'relative positions, such as T5'})"


def _feed_forward(reading: _Reading, residual: Residual, start: int, name: str, place: str) -> None:
    probe, end = reading.probe, residual.branch
    cuts = [cut for cut in probe.trace.region(start, end).cuts if probe.has_layout(cut)]
    inner = next(cut for cut in cuts if probe.is_affine(cut, end))  # the first from which on there is a dense layer
    if inner == start:  # no activation at all: the widest value is the inner one
        inner = max(cuts, key=probe.width)
    reading.affine(f"{name}.outer", probe.affine(inner, end))
    before = [cut for cut in cuts if cut <= inner and cut != start and probe.is_affine(start, cut)]
    is_plain = bool(before) and probe.width(before[-1]) == probe.width(inner)
    parts = [(before[-1], inner)] if is_plain else _gated(probe, start, inner)
    if not parts:
        raise NotReadError(f"{place} does not begin with a dense layer, or a product of two")
    (first, last), *others = parts
    activation = probe.activation(first, last) if first != last else "identity"
    if activation is None:
        known = f"supported: {', '.join(get_args(Activation))}"
        raise NotReadError(f"the activation of {place} is {probe.trace.between(first, last)}; {known}")
    reading.choose("activation", place, activation)
    reading.affine(f"{name}.{'gate' if others else 'inner'}", probe.affine(start, first))
    for other, _ in others:
        reading.affine(f"{name}.inner", probe.affine(start, other))


def _gated(probe: Probe, start: int, inner: int) -> list[tuple[int, int]]:
    """Return the ends of the activation in a product of its output and a dense layer's, and this one's."""
    product = same_as(probe.trace, inner)
    factors = list(probe.trace.producers[product].inputs.values())
    if probe.trace.producers[product].name != "mul" or len(factors) != 2:
        return []
    for gate, other in (factors, factors[::-1]):
        if probe.is_affine(start, other):
            cuts = probe.trace.region(start, gate).cuts
            fitting = [cut for cut in cuts[1:] if probe.has_layout(cut) and probe.is_affine(start, cut)]
            return [(fitting[-1], gate), (other, other)] if fitting else []
    return []


class _Table(NamedTuple):
    """A stack's embedding: its table (V, d), whether that is multiplied by the root of d, and positions."""

    rows: Tensor
    is_scaled: bool
    positions: Positions


def _embedding(reading: _Reading, stack: Stack, limit: int) -> _Table:
    """Return how a stack embeds tokens: an affine map of a table's rows, with a vector for each position."""
    probe, first, end = reading.probe, stack.embedded, stack.residuals[0].stream
    operation = probe.trace.producers[first]
    table = next(each for each in operation.arguments if isinstance(each, Tensor) and each.is_floating_point())
    for cut in probe.trace.region(first, end).cuts[:-1]:
        if (norm := probe.norm(cut, end)) is not None:
            end, reading.norms[f"{stack.name}.embedding.norm"] = cut, norm
            break
    zeros = torch.zeros(BATCH, probe.length(first), probe.width(first))
    added = probe.apply(first, end, zeros)[0].flatten(1)
    x = probe.random(first)
    moved = probe.apply(first, end, x).flatten(2) - added
    rows, scale = table.detach().float(), 1.0
    if moved.shape == x.shape:
        scale = float((moved * x).sum() / x.square().sum())
    if moved.shape != x.shape or not torch.allclose(moved, scale * x, rtol=1e-4, atol=1e-4):
        units = (zeros.index_fill(2, torch.tensor(column), 1.0) for column in range(zeros.shape[2]))
        rows = rows @ torch.stack([probe.apply(first, end, unit)[0, 0].flatten() - added[0] for unit in units])
        scale = 1.0
    root = math.sqrt(rows.shape[1])
    is_scaled = abs(scale / root - 1.0) < 1e-5
    return _Table(rows if is_scaled else rows * scale, is_scaled, find_positions(probe.trace, end, added, limit))


def _config(reading: _Reading, stacks: Sequence[Stack], tables: Sequence[_Table], ids: SpecialIds) -> ModelConfig:
    """Complete the weights, and return the configuration that they and the choices make."""
    weights, scales = reading.weights, {table.is_scaled for table in tables}
    rows = [
        table.rows * (math.sqrt(table.rows.shape[1]) if table.is_scaled and len(scales) > 1 else 1.0)
        for table in tables
    ]
    weights[ENCODER_TABLE], weights[DECODER_TABLE] = rows
    if rows[1].shape == weights[PROJECTION].shape and torch.allclose(rows[1], weights[PROJECTION], rtol=1e-5):
        weights[PROJECTION] = rows[1]
    positions, lengths = _join_positions(weights, [table.positions for table in tables], reading.only("rotation"))
    epsilon = _join_norms(reading)
    for layers in ((".query", ".key", ".value"), ("attention.output",), (".inner", ".outer", ".gate"), ("projection",)):
        _leave_out_biases(weights, layers)
    heads = (reading.only(f"{stack.name} num_heads") for stack in stacks)
    choices = {name: reading.only(name) for name in ("norm", "activation")} | ids._asdict()
    config = ModelConfig(
        **infer_config(weights, *heads)
        | dict(zip(("max_source_positions", "max_target_positions"), lengths, strict=True)),
        **choices,
        layer_norm_epsilon=epsilon,
        scale_embeddings=scales == {True},
        positions=positions,
    )
    leave_out_shared(config, weights, {})
    return config


def _leave_out_biases(weights: dict[str, Tensor], layers: tuple[str, ...]) -> None:
    names = [name for name in weights if name.endswith(tuple(f"{layer}.bias" for layer in layers))]
    if not any(bool(weights[name].any()) for name in names):
        for name in names:
            del weights[name]


def _join_positions(
    weights: dict[str, Tensor], found: Sequence[Positions], rotation: PositionConfig | None
) -> tuple[PositionConfig, list[int]]:
    """Return the positions of both sides: a formula if one is both's, or else tables of learned ones."""
    lengths = [len(each.table) for each in found]
    if rotation is not None:
        if any(each.table.any() for each in found):
            raise NotReadError("self-attention rotates queries and keys, and embeddings have positions, too")
        return rotation, lengths
    if all(each.formula == found[0].formula and each.formula is not None for each in found):
        return found[0].formula or PositionConfig(), lengths
    weights |= {name: each.table for name, each in zip(LEARNED.values(), found, strict=True)}
    return PositionConfig(layout="learned"), lengths


def _join_norms(reading: _Reading) -> float:
    """Add the norms' weights, and return their epsilon.

    One gain and bias for all components, with epsilon outside the root, is `scalar`. With a gain for each, the
    epsilon's square inside the root is as good: it only prevents a division by 0. Of different epsilons the most common
    is taken, and the logits are compared.
    """
    norms = {name: norm for name, norm in reading.norms.items() if not name.endswith(("query_norm", "key_norm"))}
    for name, norm in norms.items():
        reading.choose("layer norms' mean", name, not norm.is_rms)
    of_layers = [values for norm in norms.values() for values in (norm.gain, norm.bias)]
    is_scalar = reading.only("layer norms' mean") and all(norm.is_outside for norm in norms.values())
    is_scalar = is_scalar and all(map(_is_one_number, of_layers))
    for name, norm in reading.norms.items():
        if is_scalar and name in norms:  # whose deviation is the unbiased one
            gain = norm.gain.mean(0, keepdim=True) / math.sqrt(1.0 - 1.0 / len(norm.gain))
            reading.weights |= {f"{name}.gain": gain, f"{name}.bias": norm.bias.mean(0, keepdim=True)}
            continue
        reading.weights[f"{name}.weight"] = norm.gain
        if not norm.is_rms:
            reading.weights[f"{name}.bias"] = norm.bias
    return mode(norm.epsilon**2 if norm.is_outside and not is_scalar else norm.epsilon for norm in norms.values())


def _is_one_number(values: Tensor) -> bool:
    return torch.allclose(values, values.mean(), rtol=1e-4, atol=1e-5)
