"""One run of a module as a graph of values, of which any part can be run again on other values."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.func import functionalize
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_unflatten

Logits = Callable[[Tensor, Tensor], Tensor]  # (B, S), (B, T) int64 -> (B, T, V)


VIEWS = ("view", "_unsafe_view", "transpose", "permute", "t", "unsqueeze", "squeeze", "expand", "slice")
COPIES = ("clone", "alias", "detach", "_to_copy", "native_dropout")


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the run; `inputs` are numbers of values by their place among the flattened arguments.

    `places` are those places as the function's arguments are nested, by position and by name.
    """

    function: Any
    arguments: tuple[Any, ...]
    places: tuple[tuple[Any, ...], dict[str, Any]]
    inputs: Mapping[int, int]
    outputs: tuple[int, ...]

    @property
    def name(self) -> str:
        """Return its name without overload and namespace, such as `bmm`; copies of views have the views' names."""
        name: str = self.function.overloadpacket.__name__
        return name.removesuffix("_copy")


class _Recorder(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[Operation] = []
        self.values: list[Tensor] = []
        self._numbers: dict[int, int] = {}  # of computed values, by the identities of tensors, which stay alive

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        flat, layout = tree_flatten((args, kwargs or {}))
        inputs = {place: self._numbers[id(each)] for place, each in enumerate(flat) if id(each) in self._numbers}
        outputs = _tensors(result)
        numbers = tuple(range(len(self.values), len(self.values) + len(outputs)))
        self.values += outputs
        self._numbers |= {id(each): number for number, each in zip(numbers, outputs, strict=True)}
        places = tree_unflatten(range(len(flat)), layout)
        self.operations.append(Operation(func, tuple(flat), places, inputs, numbers))
        return result


@dataclass(frozen=True, slots=True)
class Region:
    """The values between two others: those that the first leads to, and that lead to the last; in order."""

    numbers: tuple[int, ...]
    cuts: tuple[int, ...]  # of them, those that every path from the first to the last passes


@dataclass(frozen=True)
class Trace:
    """The run: values are numbered in the order in which they were computed. What depends on no input is constant."""

    operations: Sequence[Operation]
    values: Sequence[Tensor]
    sources: int
    targets: int
    logits: int
    _regions: dict[tuple[int, int], Region] = field(default_factory=dict)

    @classmethod
    @torch.no_grad()
    def of(cls, logits: Logits, source_ids: Tensor, target_ids: Tensor) -> "Trace":
        """Record a run on (B, S) and (B, T)."""

        def run(source_ids: Tensor, target_ids: Tensor) -> Tensor:
            return logits(source_ids.clone(), target_ids.clone()).clone()

        with _plainly(), _Recorder() as recorder:
            functionalize(run)(source_ids, target_ids)
        sources, targets, *_ = (each.outputs[0] for each in recorder.operations if each.name == "clone")
        trace = cls(recorder.operations, recorder.values, sources, targets, len(recorder.values) - 1)
        changed = source_ids.roll(1, 1), target_ids.roll(1, 1)
        with _plainly():
            expected = logits(*changed)
        found = trace.run({sources: changed[0], targets: changed[1]}, trace.logits)
        if not torch.allclose(found, expected, rtol=1e-3, atol=1e-3):
            raise ValueError("what it computes depends on more than its inputs: is it in training mode?")
        return trace

    @cached_property
    def producers(self) -> Mapping[int, Operation]:
        return {number: each for each in self.operations for number in each.outputs}

    @cached_property
    def dependent(self) -> Mapping[int, frozenset[int]]:
        """Return what each value depends on: `sources`, `targets`, both or neither."""
        found: dict[int, frozenset[int]] = {}
        for number in range(len(self.values)):
            own = {number} & {self.sources, self.targets}
            found[number] = frozenset(own).union(*(found[each] for each in self.parents(number)))
        return found

    def parents(self, number: int) -> Iterable[int]:
        return self.producers[number].inputs.values()

    def region(self, first: int, last: int) -> Region:
        if (first, last) not in self._regions:
            forward, backward = {first: 1}, {last: 1}
            for number in range(first + 1, last + 1):
                if paths := sum(forward.get(each, 0) for each in self.parents(number)):
                    forward[number] = paths
            for number in range(last, first, -1):
                for each in self.parents(number):
                    backward[each] = backward.get(each, 0) + backward.get(number, 0)
            numbers = tuple(each for each in sorted(forward) if backward.get(each))
            total = forward.get(last, 0)
            cuts = tuple(each for each in numbers if forward[each] * backward[each] == total)
            self._regions[first, last] = Region(numbers, cuts)
        return self._regions[first, last]

    def between(self, first: int, last: int) -> str:
        names = dict.fromkeys(self.producers[each].name for each in self.region(first, last).numbers[1:])
        return ", ".join(name for name in names if name not in (*VIEWS, *COPIES)) or "nothing"

    def run(self, given: Mapping[int, Tensor], wanted: int) -> Tensor:
        """Return a value where others are `given`; what does not depend on these is as it was recorded."""
        return self._run(given, set().union(*(self.region(each, wanted).numbers for each in given)))[wanted]

    def run_all(self, given: Mapping[int, Tensor]) -> Mapping[int, Tensor]:
        """Return all values that depend on those that are `given`."""
        changed = set(given)
        for number in range(len(self.values)):
            if changed.intersection(self.parents(number)):
                changed.add(number)
        return self._run(given, changed)

    @torch.no_grad()
    def _run(self, given: Mapping[int, Tensor], needed: Iterable[int]) -> Mapping[int, Tensor]:
        known = dict(given)
        for number in sorted(needed):
            if number in known:
                continue
            operation = self.producers[number]
            flat = list(operation.arguments)
            for place, each in operation.inputs.items():
                flat[place] = known.get(each, self.values[each])
            args, kwargs = _nested(operation.places, flat)
            outputs = _tensors(operation.function(*args, **kwargs))
            known.update((own, each) for own, each in zip(operation.outputs, outputs, strict=True) if own not in known)
        return known


def _nested(places: Any, flat: Sequence[Any]) -> Any:
    """Return what is at these places, nested as they are: pytree's own way takes longer than small operations."""
    if isinstance(places, int):
        return flat[places]
    if isinstance(places, dict):
        return {name: _nested(each, flat) for name, each in places.items()}
    return type(places)([_nested(each, flat) for each in places])


def _tensors(result: Any) -> list[Tensor]:
    results = result if isinstance(result, list | tuple) else [result]
    return [each for each in results if isinstance(each, Tensor)]


class _WithoutGradients(TorchFunctionMode):
    """Ignores `requires_grad_`, which many call on positions, and functionalization refuses."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return args[0] if func is Tensor.requires_grad_ else func(*args, **(kwargs or {}))


@contextlib.contextmanager
def _plainly() -> Iterator[None]:
    """Have attention computed by products and softmax, which is one operation on fast paths."""
    is_fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH), _WithoutGradients():
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(is_fast)
