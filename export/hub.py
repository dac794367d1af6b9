"""Downloads checkpoints by their names at the Hugging Face hub, before a conversion; the server never does.

Files go to the hub's own cache (`HF_HOME`), from which a later conversion takes them, also without a network.
"""

import glob
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from export.command_group import how_to_install
from service.domain.errors import counted

_PART = r"[A-Za-z0-9][\w.-]*"
_NAME = re.compile(rf"(?P<owner>{_PART})/{_PART}(?:@(?P<revision>[\w./-]+))?")
_ADDRESS = re.compile(
    rf"(?:hf://|https?://(?:www\.)?(?:huggingface\.co|hf\.co)/)(?P<name>{_PART}(?:/{_PART})?)"
    r"(?:@(?P<revision>[\w./-]+)|/(?:tree|blob)/(?P<branch>[^/?#]+)[^?#]*)?/?(?:[?#].*)?"
)
# One of these is taken, the first that there is: others hold the same weights again.
_WEIGHTS = (
    ("model.safetensors",),
    ("model.safetensors.index.json", "model-*-of-*.safetensors"),
    ("pytorch_model.bin",),
    ("pytorch_model.bin.index.json", "pytorch_model-*-of-*.bin"),
    ("model.bin",),  # CTranslate2's
    ("model*.npz", "*.npz"),
    ("*.intgemm*.bin",),
)
_ADAPTERS = (("adapter_model.safetensors",), ("adapter_model.bin",))
_BESIDE = (
    *("*.json", "*.model", "*.spm", "*.txt", "*.yml", "*.yaml", "*.tsv"),
    *("*.SRC", "*.TGT", "tokenization_small100.py"),  # IndicTrans2's; what tells SMaLL-100 from M2M100, never run
    *("README.md", "LICENSE*", "LICENCE*", "lex*.bin"),
)
_NOT_BESIDE = ("*.index.json", "onnx_config.json", "training_args*", "trainer_state.json")
_SECONDS = 10.0  # to wait for an answer
_LOG_IN = "set HF_TOKEN or run 'hf auth login'"
_GATED = f"its owner must allow it: ask on the model's page, then {_LOG_IN}"
_SUFFIXES_OF_WEIGHTS = (".h5", ".msgpack", ".ot", ".onnx", ".gguf", ".pt", ".bin", ".safetensors", ".npz")


class HubError(Exception):
    """A checkpoint can't be downloaded; the message is one line with what to do."""


@dataclass(frozen=True, slots=True)
class HubName:
    """A model's name at the hub, such as "Helsinki-NLP/opus-mt-en-de", and a branch, tag or commit; `None`: main."""

    model: str
    revision: str | None = None

    def __str__(self) -> str:
        return self.model + (f"@{self.revision}" if self.revision else "")


def hub_name(text: str) -> HubName | None:
    """Return the hub's name that `text` is: an address, or OWNER/NAME where neither it nor OWNER is a path here."""
    if found := _ADDRESS.fullmatch(text):
        return HubName(found["name"], found["revision"] or found["branch"])
    found = _NAME.fullmatch(text)
    if found is None or Path(text).exists() or Path(found["owner"]).exists():
        return None
    name, _, revision = text.partition("@")
    return HubName(name, revision or None)


def download(name: HubName, say: Callable[[str], None]) -> Path:
    """Return the folder of a model's files: those that a conversion reads, downloaded if they are not in the cache."""
    try:
        import huggingface_hub as hub
        from huggingface_hub import errors
    except ModuleNotFoundError:
        raise HubError(
            f"{name} is not a folder here, and huggingface_hub, which would download a model of this name, is "
            f"not installed; {how_to_install('huggingface_hub')}, or give a folder"
        ) from None
    try:
        found = hub.HfApi().model_info(name.model, revision=name.revision, files_metadata=True, timeout=_SECONDS)
    except errors.GatedRepoError:
        raise _failure(name, _GATED) from None
    except errors.RevisionNotFoundError:
        raise _failure(
            name, f"it has no branch, tag or commit {name.revision!r}; leave out @ and what follows for the main branch"
        ) from None
    except errors.RepositoryNotFoundError:
        advice = f"there is no folder and no public model of this name; check the name, or {_LOG_IN}"
        raise _failure(name, advice) from None
    except Exception as error:  # of the HTTP library that the client's version happens to use
        if cached := _cached(name):
            say(f"the hub can't be reached ({_first_line(error)}); taking {name} from the cache: {cached}")
            return cached
        advice = "check the network, or copy the model's files to a folder here and give that"
        raise _failure(name, f"{_first_line(error)}; {advice}") from None
    sizes = {each.rfilename: each.size or 0 for each in found.siblings or ()}
    files = needed_files(sizes)
    if not files:
        others = ", ".join(sorted(each for each in sizes if each.endswith(_SUFFIXES_OF_WEIGHTS))[:5])
        raise _failure(
            name, f"its weights are {others or 'missing'}; supported: model.safetensors and pytorch_model.bin"
        )
    megabytes = sum(map(sizes.__getitem__, files)) / 1e6
    say(f"{name} at {found.sha}: {len(files)} of {counted(len(sizes), 'file')}, {megabytes:.1f} MB")
    try:
        return Path(
            hub.snapshot_download(name.model, revision=name.revision, allow_patterns=[*map(glob.escape, files)])
        )
    except errors.GatedRepoError:
        raise _failure(name, _GATED) from None
    except Exception as error:  # as above, and of the disk
        advice = "run this again to resume where it stopped"
        raise _failure(name, f"{_first_line(error)}; {advice}") from None


def needed_files(names: Iterable[str]) -> list[str]:
    """Return those of a model's files that a conversion reads: weights once, settings, tokenizers, card, licence."""
    here = [name for name in names if "/" not in name]
    weights = [_first(here, choices) for choices in (_WEIGHTS, _ADAPTERS)]
    if not any(weights):
        return []
    beside = [name for name in here if _matches(name, _BESIDE) and not _matches(name, _NOT_BESIDE)]
    return sorted({*beside, *weights[0], *weights[1]})


def _first(names: Iterable[str], choices: Iterable[tuple[str, ...]]) -> list[str]:
    found = ([name for name in names if _matches(name, patterns)] for patterns in choices)
    return next(filter(None, found), [])


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _cached(name: HubName) -> Path | None:
    import huggingface_hub as hub

    for file in ("config.json", "adapter_config.json"):
        path = hub.try_to_load_from_cache(name.model, file, revision=name.revision)
        if isinstance(path, str):
            return Path(path).parent
    return None


def _failure(name: HubName, reason: str) -> HubError:
    return HubError(f"{name} can't be downloaded: {reason}")


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
