"""Recognises what is no checkpoint as it stands: wrong paths, archives, pointers and parts of files."""

from difflib import get_close_matches
from pathlib import Path

_LFS = b"version https://git-lfs.github.com/spec/v1"
_POINTER_BYTES = 1024  # git-lfs itself reads no larger file as a pointer
_PARTS = (".incomplete", ".part", ".crdownload", ".aria2", ".download")
_WEIGHTS = (".safetensors", ".bin", ".npz", ".gz", ".zst")
_MAGIC = (
    (b"GGUF", "a file of llama.cpp, whose weights are quantized for it", "give the folder that it was made from"),
    (b"PK\x03\x04", "a zip archive", "unpack it and give the folder; a state dict of torch is for --from notebook"),
    (b"\x1f\x8b", "compressed by gzip", "unpack it and give the folder"),
    (b"\x28\xb5\x2f\xfd", "compressed by Zstandard", "unpack it and give the folder"),
    (b"version https://git-lfs", "a pointer of git-lfs", "run 'git lfs pull' in its folder, and give that"),
)
_NAMED = 5


def mistaken_path(path: Path) -> str:
    """Return what is wrong with a path that is not a folder, and what to do."""
    if not path.exists():
        return f"there is no such file or folder{_near(path)}"
    if not path.is_file():
        return "it is neither a folder nor a file"
    try:
        with path.open("rb") as file:
            start = file.read(64)
    except OSError as error:
        return f"it can't be read ({error.strerror}); change its permissions"
    for magic, what, advice in _MAGIC:
        if start.startswith(magic):
            return f"it is {what}; {advice}"
    if path.suffix == ".safetensors" or (path.parent / "config.json").is_file():
        return f"it is a file; give its folder, {path.parent}, which must hold the settings and the tokenizer, too"
    return "it is not a folder; give the folder that holds the checkpoint's files"


def mistaken_folder(directory: Path) -> str | None:
    """Return what is wrong with a folder, whatever the kind of checkpoint, and what to do; `None` if nothing is."""
    files = [path for path in directory.iterdir() if path.is_file()]
    if not files:
        inner = sorted(path.name for path in directory.iterdir() if path.is_dir() and path.name[0] != ".")
        return f"it holds folders only ({_listed(inner)}): give one of them, or --all" if inner else "it holds no files"
    pointers = sorted(path.name for path in files if _is_pointer(path))
    if pointers:
        return (
            f"{_listed(pointers)} are pointers of git-lfs and not the files themselves; run 'git lfs install' and "
            "'git lfs pull' there, or download them"
        )
    if any(path.suffix in _WEIGHTS for path in files):
        return None
    parts = sorted(path.name for path in files if path.suffix in _PARTS)
    return f"{_listed(parts)}: parts of downloads, and no weights; download them again" if parts else None


def _is_pointer(path: Path) -> bool:
    if path.stat().st_size > _POINTER_BYTES:
        return False
    with path.open("rb") as file:
        return file.read(len(_LFS)) == _LFS


def _near(path: Path) -> str:
    """Return the folder beside the missing one that may be meant."""
    parent = path.parent
    if not parent.is_dir():
        return f", nor {parent}; check the path"
    near = get_close_matches(path.name, [each.name for each in parent.iterdir()], 1)
    return f"; nearest is {parent / near[0]}" if near else f" in {parent}; check the path"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
