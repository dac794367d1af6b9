"""The author's own module: built by a function that the user names, called with ids, and asked for translations."""

import contextlib
import copy
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from export.importers.imported import Row
from export.importers.module.structure import NotReadError
from export.importers.weight_files import without_wrappers
from export.stages import progress

_LOGITS = "logits"
_NAMED = 2  # of many weights
Call = Callable[[nn.Module, Tensor, Tensor], Any]


@dataclass(frozen=True, slots=True)
class Author:
    """A module with its weights, and how it is called: (B, S), (B, T) int64 -> (B, T, V), of rows without padding."""

    module: nn.Module
    call: Call

    def logits(self, source_ids: Tensor, target_ids: Tensor) -> Tensor:
        """Return the logits, or their log-softmax, of the token after each target position."""
        how = f"with ids of shapes {tuple(source_ids.shape)} and {tuple(target_ids.shape)}"
        advice = f"write {_LOGITS}(model, source_ids, target_ids) beside the function that builds it"
        try:
            found = self.call(self.module, source_ids, target_ids)
        except Exception as error:  # whatever the author's code raises
            if isinstance(error, IndexError):  # of an embedding
                advice = "if the tokenizers have more tokens than the model, or are swapped, give its own"
            raise NotReadError(f"the model can't be called {how} ({_line(error)}); {advice}") from error
        if not isinstance(found, Tensor) or found.shape[:2] != target_ids.shape or found.dim() != 3:
            shown = f"shape {tuple(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
            raise NotReadError(f"the model called {how} returns {shown}, expected (rows, tokens, vocabulary); {advice}")
        if found.isnan().any():
            raise NotReadError(
                f"the model called {how} returns NaN; check its weights, and that no mask hides all tokens"
            )
        return found.float()


def load_author(like: str, weights: Mapping[str, Tensor]) -> Author:
    """Run the function that `like` names, as in `factory.py:build`, and load the weights into the module it returns.

    If the file has a function `logits(model, source_ids, target_ids)`, the module is called by it.
    """
    path, _, name = like.rpartition(":")
    if not path or not Path(path).is_file():
        what = f"{path} is not a file" if path else f"{like} names no function"
        raise NotReadError(f"{what}; expected FILE.py:FUNCTION, which returns the model")
    specification = importlib.util.spec_from_file_location("dragoman_author", path)
    assert specification is not None
    assert specification.loader is not None
    code = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = code  # where dataclasses and pickles look for it
    with _on_path(Path(path).parent):
        try:
            specification.loader.exec_module(code)
            module = getattr(code, name, None)
            if callable(module) and not isinstance(module, nn.Module):
                module = module()
        except (Exception, SystemExit) as error:  # such as argparse's
            raise NotReadError(f"{like} can't build the model ({_line(error)})") from error
    if not hasattr(code, name):
        raise NotReadError(f"{path} has no function {name!r}; it has {', '.join(_functions(code)) or 'none'}")
    if not isinstance(module, nn.Module):
        raise NotReadError(f"{like} returns {type(module).__name__}, expected a torch.nn.Module with its weights")
    _load(module, weights, like)
    inner: nn.Module = getattr(module, "_orig_mod", module)  # what `torch.compile` has wrapped
    return Author(inner.float().eval(), getattr(code, _LOGITS, _call))


def _functions(code: ModuleType) -> list[str]:
    return [name for name, each in vars(code).items() if callable(each) and each.__module__ == code.__name__]


def _load(module: nn.Module, weights: Mapping[str, Tensor], like: str) -> None:
    """Load weights, whose names may all begin with the attribute of a training harness that held the module."""
    own = module.state_dict(keep_vars=True)
    if any(each.is_meta for each in own.values()):
        raise NotReadError(f"{like} builds the model without numbers (device meta); build it on the CPU")
    names = without_wrappers({name: name for name in own})
    first = f"{next(iter(weights), '').partition('.')[0]}."
    if not names.keys() & weights.keys() and all(name.startswith(first) for name in weights):
        weights = {name.removeprefix(first): each for name, each in weights.items()}
    lacking, further = sorted(names.keys() - weights.keys()), sorted(weights.keys() - names.keys())
    shapes = [
        (each, tuple(given.shape), tuple(own[names[each]].shape)) for each, given in weights.items() if each in names
    ]
    other = [f"{each} is {given} instead of {wanted}" for each, given, wanted in shapes if given != wanted]
    problems = [
        f"the file {how} {', '.join(found[:_NAMED])}{f' and {len(found) - _NAMED} more' * (len(found) > _NAMED)}"
        for how, found in (("lacks", lacking), ("has besides", further), ("differs, as", other))
        if found
    ]
    if problems:
        raise NotReadError(f"the weights are not those of the model that {like} builds: {'; '.join(problems)}")
    module.load_state_dict({full: weights[name] for name, full in names.items()})
    for name, full in names.items():
        if own[full].dtype == weights[name].dtype and torch.equal(own[full], weights[name]):
            own[full].data = weights[name]  # mapped from the file, instead of a second copy in memory


def copied_author(module: nn.Module, logits: Call | None) -> Author:
    """Return a copy of a module, in float32 on the CPU, which shares the memory of weights that are so already."""
    tensors = dict[int, Tensor]()
    kept = (value for each in module.modules() for value in vars(each).values() if isinstance(value, Tensor))
    for each in (*module.parameters(), *module.buffers(), *kept):  # such as scales, or the attention of the last step
        value = each.detach().to("cpu", torch.float32 if each.is_floating_point() else each.dtype)
        tensors[id(each)] = nn.Parameter(value, requires_grad=False) if isinstance(each, nn.Parameter) else value
    try:
        copied = copy.deepcopy(module, tensors)
    except Exception as error:  # whatever the author's attributes raise
        raise NotReadError(f"it can't be copied ({_line(error)})") from error
    return Author(copied.eval(), logits or _call)


def _call(module: nn.Module, *ids: Tensor) -> Any:
    return module(*ids)


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


@contextlib.contextmanager
def _on_path(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


@dataclass(frozen=True, slots=True)
class AuthorReference:
    """A `Reference` that translates greedily, with whole targets for each token."""

    author: Author
    start_id: int
    eos_id: int
    suppressed_ids: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"its author's {type(self.author.module).__name__}"

    @property
    def options(self) -> Mapping[str, float]:
        return {}

    @torch.no_grad()
    def generate(self, rows: Sequence[Row], beam_size: int, max_output_tokens: int) -> list[tuple[int, ...]]:
        return [self._greedy(row, max_output_tokens) for row in progress(rows, self.name)]

    def _greedy(self, row: Row, max_output_tokens: int) -> tuple[int, ...]:
        source = torch.tensor([row.source_ids])
        target = [self.start_id, *row.target_prefix_ids]
        start = len(target)
        while len(target) - start < max_output_tokens:
            logits = self.author.logits(source, torch.tensor([target]))[0, -1]
            logits[list(self.suppressed_ids)] = -torch.inf
            best = int(logits.argmax())
            if best == self.eos_id:
                break
            target.append(best)
        return tuple(target[start:])
