"""The commands in the documents: programs, subcommands, flags and targets of make are those that there are.

What runs them is elsewhere: `tests/clients/test_api_docs.py`, `test_security.py` and `test_your_transformer.py`.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from export.cli import main as export
from service.cli.main import dragoman
from tests.servers import REPOSITORY

PAGES = [
    path.relative_to(REPOSITORY)
    for pattern in ("*.md", "docs/*.md", "client/*.md", "deploy/**/*.md", "checkpoints/*/*.md")
    for path in sorted(REPOSITORY.glob(pattern))
]
BLOCK = re.compile(r"^ *```(?:bash|console)?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<!`)`((?:dragoman|python -m export|make) [^`]+)`(?!`)", re.DOTALL)
OURS = re.compile(
    r"(?:^|\||&&)[ ]*(?:\$ )?(?:[A-Z_]+=\S* )*(?:[\w./-]*/)?"
    r"((?:dragoman|python3? -m (?:export|service)|make)(?= )[^|>;&()\n]*)",
    re.MULTILINE,
)
TARGETS = set(re.findall(r"^([\w-]+):", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE)) | {"export-en-de"}


def commands_in(text: str) -> Iterator[str]:
    """Yield the commands of ours in the blocks and the lines of a page, each on one line, without comments."""
    for block in BLOCK.findall(text):
        for found in OURS.findall(re.sub(r"(?:^| )#.*", "", block.replace("\\\n", " "), flags=re.MULTILINE)):
            yield found.strip()
    for found in INLINE.findall(text):
        yield re.split(r"[|>;&]", " ".join(found.split()))[0].strip()


def wrong_in(command: str) -> str:
    """Return what is wrong with a command; an empty string if nothing is."""
    try:
        words = shlex.split(command)
    except ValueError:  # a quotation that a placeholder of the page cuts
        words = command.split()
    if words[0] == "make":
        targets = [word for word in words[1:] if "=" not in word and not word.startswith("-")]
        return next((f"no target {word}" for word in targets if word not in TARGETS), "")
    words = words[1:] if words[0] == "dragoman" else words[3:]
    program: click.Command = dragoman if "export" not in command.split()[:3] else export
    context = click.Context(program)
    while isinstance(program, click.Group) and words and re.fullmatch(r"[a-z][\w-]*", words[0]):
        inner = program.get_command(context, words[0])
        if inner is None:
            return f"no command {words[0]}"
        program, words = inner, words[1:]
    known = {flag for each in program.get_params(context) for flag in (*each.opts, *each.secondary_opts)}
    flags = [word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)]
    return next((f"no flag {flag}" for flag in flags if flag not in known | {"--help", "-h", "--version"}), "")


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_the_commands_of_a_page_are_there(page: Path) -> None:
    text = (REPOSITORY / page).read_text("utf-8")
    assert {command: wrong for command in commands_in(text) if (wrong := wrong_in(command))} == {}


def test_commands_are_found_and_wrong_ones_are_told() -> None:
    assert sum(1 for page in PAGES for _ in commands_in((REPOSITORY / page).read_text("utf-8"))) > 120
    page = "```\n$ .venv/bin/dragoman serve --port 1 \\\n    --no-such x  # --nor-this\n```\nSee `make nothing`.\n"
    assert [wrong_in(command) for command in commands_in(page)] == ["no flag --no-such", "no target nothing"]
    assert wrong_in("dragoman fly") == "no command fly"
    assert wrong_in("python -m export convert X --precision int8 -o y") == ""
    assert wrong_in("python -m export convert X --precise") == "no flag --precise"
