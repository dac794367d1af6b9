"""Collect the pages of the site: README.md as the first one, docs/, and what these link to elsewhere in the repository.

`python docs/site/collect.py FOLDER` writes them to a folder, with links that lead to where their targets are in it. So
the documents are read as they are, in the repository and in the site. A link to a folder becomes its text.
"""

import posixpath
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOME = ROOT / "README.md"
_CODE = r"^```.*?^```$|`[^`\n]+`"
_LINK = re.compile(rf"{_CODE}|!?\[(?P<text>[^\]]*)\]\((?P<target>[^)#\s]+)(?:#[^)\s]*)?\)", re.MULTILINE | re.DOTALL)


def collect(folder: Path) -> None:
    """Write the site's files to a folder, which must be new or empty."""
    left = [HOME, *sorted((ROOT / "docs").glob("*.md"))]
    seen = set(left)
    while left:
        path = left.pop()
        there = folder / _place(path)
        there.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix != ".md":
            shutil.copyfile(path, there)
            continue
        text, targets = _led(path)
        there.write_text(text, encoding="utf-8")
        left += targets - seen
        seen |= targets


def _place(path: Path) -> str:
    """Return where a file of the repository is in the site."""
    name = path.relative_to(ROOT).as_posix()
    if path == HOME:
        return "index.md"
    return name.removeprefix("docs/") if name.startswith("docs/") else f"source/{name}"


def _led(path: Path) -> tuple[str, set[Path]]:
    """Return a page with links as in the site, and the files that they lead to."""
    targets = set()
    here = posixpath.dirname(_place(path)) or "."

    def led(found: re.Match[str]) -> str:
        given = found["target"]
        if given is None or ":" in given:  # code, or an address
            return found[0]
        target = (path.parent / given).resolve()
        if target.is_dir():
            return found["text"]
        targets.add(target)
        return found[0].replace(f"({given}", f"({posixpath.relpath(_place(target), here)}")

    return _LINK.sub(led, path.read_text(encoding="utf-8")), targets


if __name__ == "__main__":
    collect(Path(sys.argv[1]))
