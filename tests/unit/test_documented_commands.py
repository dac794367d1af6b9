"""The commands in the documents: programs, subcommands, flags and targets of make are those that there are.

Each block of them is run by `tests/clients/test_docs.py`, or says why not.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from export.cli import main as export
from service.cli.main import dragoman
from tests.doc_blocks import COMMANDS, PAGES, REASONS, Block, blocks_in
from tests.servers import REPOSITORY

INLINE = re.compile(r"(?<!`)`((?:dragoman|python -m export|make) [^`]+)`(?!`)", re.DOTALL)
OURS = re.compile(
    r"(?:^|\||&&)[ ]*(?:\$ )?(?:[A-Z_]+=\S* )*(?:[\w./-]*/)?"
    r"((?:dragoman|python3? -m (?:export|service)|make)(?= )[^|>;&()\n]*)",
    re.MULTILINE,
)
TARGETS = set(re.findall(r"^([\w-]+):", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE)) | {"export-en-de"}


LANGUAGES = {*COMMANDS, "dockerfile", "json", "mermaid", "promql", "python", "text", "toml", "tsv", "yaml"}


def ours_in(block: Block) -> list[str]:
    """Return the commands of ours in a block, each on one line, without comments."""
    text = re.sub(r"(?:^| )#.*", "", block.text.replace("\\\n", " "), flags=re.MULTILINE)
    return [found.strip() for found in OURS.findall(text)]


def commands_in(text: str) -> Iterator[str]:
    """Yield the commands of ours in the blocks and the lines of a page, each on one line, without comments."""
    for block in blocks_in(text):
        if block.language in COMMANDS:
            yield from ours_in(block)
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


def wrong_with(block: Block, page: Path) -> str:
    """Return why a block is neither run nor marked as it should be; an empty string if it is."""
    if block.language not in LANGUAGES:
        return f"the language is {block.language!r}, not one of {sorted(LANGUAGES)}"
    if block.language not in COMMANDS:
        return "it has a mark, or commands" if block.mark or (block.language == "text" and ours_in(block)) else ""
    if block.mark == "not run" and block.why not in REASONS:
        return f"the reason is {block.why!r}, not one of {sorted(REASONS)}"
    if block.mark == "run" and str(page) not in (REPOSITORY / block.why).read_text("utf-8"):
        return f"{block.why} does not name {page}"
    return ""


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_each_block_of_commands_is_run_or_says_why_not(page: Path) -> None:
    text = (REPOSITORY / page).read_text("utf-8")
    blocks = list(blocks_in(text))
    assert {block: wrong for block in blocks if (wrong := wrong_with(block, page))} == {}
    assert len(re.findall(r"^ *(?:```|~~~)", text, re.MULTILINE)) == 2 * len(blocks)
    assert len(re.findall(r"<!-- (?:not )?run", text)) == sum(1 for block in blocks if block.mark)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("```\nmake\n```", "the language is '', not one of"),
        ("```text\ndragoman models\n```", "it has a mark, or commands"),
        ("<!-- not run: root -->\n```yaml\na: 1\n```", "it has a mark, or commands"),
        ("<!-- not run: too hard -->\n```bash\nmake\n```", "the reason is 'too hard', not one of"),
        ("<!-- run: tests/doc_blocks.py -->\n```bash\nmake\n```", "tests/doc_blocks.py does not name docs/a.md"),
        ("- A list:\n\n  <!-- not run: root -->\n  ```bash\n  ls\n  ```", ""),
    ],
)
def test_a_block_that_is_neither_run_nor_marked_is_told(text: str, wrong: str) -> None:
    [block] = blocks_in(text)
    assert re.sub("not one of .*", "not one of", wrong_with(block, Path("docs/a.md"))) == wrong


def test_commands_are_found_and_wrong_ones_are_told() -> None:
    page = (
        "```console\n$ .venv/bin/dragoman serve --port 1 \\\n    --no-such x  # --nor-this\n```\nSee `make nothing`.\n"
    )
    assert [wrong_in(command) for command in commands_in(page)] == ["no flag --no-such", "no target nothing"]
    assert wrong_in("dragoman fly") == "no command fly"
    assert wrong_in("python -m export convert X --precision int8 -o y") == ""
    assert wrong_in("python -m export convert X --precise") == "no flag --precise"
