"""The documents' fenced blocks: those of commands are run by tests, or say why they can't be, in a comment before them.

`<!-- not run: a cluster -->` has one of `REASONS`; `<!-- run: tests/clients/test_x.py -->` names a test of that page.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.servers import REPOSITORY

PAGES = [
    path.relative_to(REPOSITORY)
    for pattern in ("*.md", "docs/*.md", "client/*.md", "deploy/**/*.md", "checkpoints/*/*.md")
    for path in sorted(REPOSITORY.glob(pattern))
]
COMMANDS = ("bash", "console")  # as one types them; with prompts and what is printed
REASONS = {"a cluster", "an image", "a GPU", "a model to download", "a registry", "grpcurl", "minutes of work", "root"}
_BLOCK = re.compile(
    r"(?:^ *<!-- (?P<mark>(?:not )?run): (?P<why>[^\n]*) -->\n+)?"
    r"^(?P<indent> *)```(?P<language>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block without its indentation; `mark` is what its comment begins with, if it has one."""

    language: str
    text: str
    mark: str = ""
    why: str = ""

    @property
    def is_run(self) -> bool:
        """Return whether `tests/clients/test_docs.py` has to run it."""
        return self.language in COMMANDS and not self.mark


def blocks_in(text: str) -> Iterator[Block]:
    """Yield the blocks of a page."""
    for found in _BLOCK.finditer(text):
        inner = re.sub(f"^{found['indent']}", "", found["text"], flags=re.MULTILINE)
        yield Block(found["language"], inner, found["mark"] or "", found["why"] or "")


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of one of `PAGES`."""
    return list(blocks_in((REPOSITORY / page).read_text("utf-8")))
