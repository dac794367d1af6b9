"""The structure of a traced module: its stacks, their residual connections, and the attentions and norms in these."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import Tensor

from export.importers.module.trace import COPIES, VIEWS, Trace

SUBLAYERS = {  # of each layer, in our names
    "encoder": ("self_attention", "feed_forward"),
    "decoder": ("self_attention", "cross_attention", "feed_forward"),
}
_PRODUCTS = ("bmm", "matmul", "mm", "baddbmm")
_SOFTMAX = ("_softmax", "_safe_softmax")


class NotReadError(ValueError):
    """A module computes something else than an encoder-decoder Transformer that we have; the message says where."""


@dataclass(frozen=True, slots=True)
class Core:
    """One softmax of attention, possibly of several heads: values of queries, keys and values, and what comes of it."""

    queries: int  # or keys, if these are multiplied by queries: what depends on which tokens tells
    keys: int
    scores: int  # what the softmax reads
    axis: int  # of scores, that of the keys
    values: int
    heads: int


@dataclass(frozen=True, slots=True)
class Residual:
    """A residual connection: `total` is `factor` times `stream` plus `branch`, which is computed from it."""

    stream: int
    branch: int
    total: int
    factor: float
    cores: tuple[Core, ...]  # none: it is a feed-forward layer
    reads_memory: bool


@dataclass(frozen=True, slots=True)
class Stack:
    """An encoder or a decoder: from its embedded tokens to its output, which the projection or attention reads."""

    name: str
    embedded: int
    residuals: Sequence[Residual]
    output: int

    def place(self, index: int) -> str:
        kinds = SUBLAYERS[self.name]
        layer, kind = divmod(index, len(kinds))
        called = kinds[kind].replace("_", "-")
        return f"{self.name} layer {layer}'s {called}{' layer' if called == 'feed-forward' else ''}"


def find_stacks(trace: Trace) -> tuple[Stack, Stack]:
    """Return encoder and decoder; raise `NotReadError` if the module has no such structure."""
    source, target = (_embedded(trace, side) for side in ("source", "target"))
    logits = _before_softmax(trace, trace.logits)
    cuts = trace.region(source, logits).cuts
    memory = max((cut for cut in cuts if trace.targets not in trace.dependent[cut]), default=source)
    encoder = _encoder(trace, source, memory)
    decoder = Stack("decoder", target, _residuals(trace, target, logits), logits)
    for stack, kinds in ((encoder, ("self", "feed")), (decoder, ("self", "cross", "feed"))):
        found = ["feed" if not each.cores else "cross" if each.reads_memory else "self" for each in stack.residuals]
        if not found or found != list(kinds) * (len(found) // len(kinds)):
            shown = ", ".join(found) or "none"
            raise NotReadError(
                f"the {stack.name} has the residual connections {shown}; expected {', '.join(kinds)} in each "
                "layer, each added to its input; parallel, gated and dense ones are not supported"
            )
    return encoder, decoder


def _encoder(trace: Trace, source: int, memory: int) -> Stack:
    """Return the encoder, which ends before the first dense layer behind it: keys and values are made by that."""
    residuals = _residuals(trace, source, memory)
    behind = trace.region(residuals[-1].total if residuals else source, memory)
    dense = (each for each in behind.numbers[1:] if trace.producers[each].name in (*_PRODUCTS, "addmm"))
    end = next(dense, memory + 1)
    return Stack("encoder", source, residuals, max(cut for cut in behind.cuts if cut < end))


def same_as(trace: Trace, number: int) -> int:
    """Return the value that a value only holds in other axes or another copy."""
    while True:
        operation = trace.producers[number]
        if operation.name not in (*VIEWS, *COPIES) or len(operation.inputs) != 1:
            return number
        (number,) = operation.inputs.values()


def _embedded(trace: Trace, side: str) -> int:
    ids = trace.sources if side == "source" else trace.targets
    tables = ("embedding", "index", "index_select")
    for number, value in enumerate(trace.values):
        is_vector = trace.producers[number].name in tables and value.is_floating_point()
        if is_vector and trace.dependent[number] == {ids}:
            return number
    raise NotReadError(f"no table is read with the {side}'s token ids by themselves: is it an encoder-decoder?")


def _before_softmax(trace: Trace, number: int) -> int:
    """Return the logits of which the output may be the (logarithm of the) softmax."""
    number = same_as(trace, number)
    while (operation := trace.producers[number]).name in ("_log_softmax", "log", *_SOFTMAX):
        number = same_as(trace, next(iter(operation.inputs.values())))
    return number


def _residuals(trace: Trace, first: int, last: int) -> list[Residual]:
    """Return the residual connections on the only way from a stack's embedding to its end."""
    cuts = trace.region(first, last).cuts
    origins = {cut: same_as(trace, cut) for cut in cuts}
    found = []
    for number in cuts:
        operation = trace.producers[number]
        inputs = [each for each in operation.inputs.values() if trace.region(first, each).numbers]
        if operation.name != "add" or len(inputs) != 2:
            continue
        streams = [
            (each, *scaled)
            for each in inputs
            if (scaled := next((pair for pair in _unscaled(trace, each) if pair[0] in origins.values()), None))
        ]
        if len(streams) != 1:
            continue
        ((stream, origin, factor),) = streams
        (branch,) = (each for each in inputs if each != stream)
        numbers = trace.region(origin, branch).numbers
        cores = tuple(_core(trace, each) for each in numbers if trace.producers[each].name in _SOFTMAX)
        reads_memory = trace.targets in trace.dependent[branch] and any(
            trace.targets not in trace.dependent[each] for core in cores for each in (core.queries, core.keys)
        )
        found.append(Residual(origin, branch, number, factor, cores, reads_memory))
    return found


def _unscaled(trace: Trace, number: int) -> Iterator[tuple[int, float]]:
    """Return the origin of a value, and that of what a number multiplies to make it."""
    origin = same_as(trace, number)
    yield origin, 1.0
    operation = trace.producers[origin]
    if operation.name in ("mul", "div"):
        place = max(operation.inputs, key=lambda each: operation.arguments[each].numel(), default=0)
        other = operation.arguments[1 - place]
        if not isinstance(other, Tensor) or other.numel() == 1:
            yield same_as(trace, operation.inputs[place]), float(other) ** (1 if operation.name == "mul" else -1)


def _core(trace: Trace, probabilities: int) -> Core:
    """Return the attention around a softmax: the product before it, and the first one behind it."""
    softmax = trace.producers[probabilities]
    scores = next(iter(softmax.inputs.values()))
    queries, keys = _back_to_product(trace, scores)
    reached = {probabilities}
    for number in range(probabilities + 1, len(trace.values)):
        inputs = list(trace.producers[number].inputs.values())
        if not reached.intersection(inputs):
            continue
        if trace.producers[number].name in _PRODUCTS:
            values = next(each for each in inputs if each not in reached)
            return Core(queries, keys, scores, softmax.arguments[1], values, number)
        reached.add(number)
    raise NotReadError("the softmax of an attention is multiplied with no values")


def _back_to_product(trace: Trace, scores: int) -> tuple[int, int]:
    """Return the factors of the last product before scores; what `baddbmm` adds to it, which is a mask, is before."""
    waiting = [scores]
    while waiting:
        operation = trace.producers[waiting.pop(0)]
        if operation.name in (*_PRODUCTS, "addmm") and len(operation.inputs) >= 2:
            first, last = list(operation.inputs.values())[-2:]
            if not trace.dependent[last]:
                raise NotReadError(
                    "a softmax reads a dense layer's outputs, as mixtures of experts and talking heads have"
                )
            return first, last
        waiting += [each for each in operation.inputs.values() if trace.values[each].is_floating_point()]
    raise NotReadError("the scores of an attention are no product of queries and keys")
