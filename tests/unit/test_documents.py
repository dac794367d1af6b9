"""The documents: lines of at most 120 columns, working links, and a map of the code that names only what exists."""

import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from export.importers.registry import KINDS
from tests.doc_blocks import PAGES
from tests.servers import REPOSITORY

WIDTH = 120
URL = re.compile(r"https?://\S+")
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
LOADED = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=\"?(?:https?:)?//", re.IGNORECASE)
LINK = re.compile(r"\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)$", re.MULTILINE)

DOCUMENTS = [str(page) for page in PAGES]


@cache
def anchors(document: Path) -> frozenset[str]:
    """Return the anchors of the document's headings, as GitHub makes them."""
    titles = HEADING.findall(CODE.sub("", document.read_text(encoding="utf-8")))
    return frozenset(re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles)


def too_wide(text: str) -> list[str]:
    """Return the lines of more than `WIDTH` columns, URLs not counted."""
    return [line for line in text.splitlines() if len(URL.sub("", line)) > WIDTH]


def test_the_documents_are_found() -> None:
    assert {"README.md", "docs/architecture.md", "checkpoints/en-de/README.md"} <= set(DOCUMENTS)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_line_is_wider_than_120_columns(name: str) -> None:
    assert too_wide((REPOSITORY / name).read_text(encoding="utf-8")) == []


def test_a_wide_line_is_found_and_an_address_is_not_counted() -> None:
    assert too_wide("a" * 121) == ["a" * 121]
    assert too_wide("see https://example.org/" + "a" * 121) == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_link_leads_somewhere(name: str) -> None:
    document = REPOSITORY / name
    targets = [first or second for first, second in LINK.findall(CODE.sub("", document.read_text(encoding="utf-8")))]
    for target in targets:
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        there = (document.parent / path).resolve() if path else document
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


def test_the_map_of_the_code_names_modules_that_exist() -> None:
    text = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    modules = set(re.findall(r"`([\w/]+\.py)`", text))
    assert len(modules) > 40
    paths = [
        f"/{path.relative_to(REPOSITORY)}" for top in ("service", "export") for path in (REPOSITORY / top).rglob("*.py")
    ]
    assert {name for name in modules if not any(path.endswith(f"/{name}") for path in paths)} == set()


def built(folder: Path, extra: str = "") -> subprocess.CompletedProcess[str]:
    """Build the site as `make docs` does, in a folder; `extra` is added to its first page."""
    pages = folder / "build/docs"
    subprocess.run([sys.executable, REPOSITORY / "docs/site/collect.py", pages], check=True, timeout=60)
    shutil.copy(REPOSITORY / "mkdocs.yml", folder)
    with (pages / "index.md").open("a", encoding="utf-8") as page:
        page.write(extra)
    zensical = Path(sys.executable).parent / "zensical"
    return subprocess.run([zensical, "build", "--strict"], cwd=folder, timeout=120, capture_output=True, text=True)


def test_the_site_has_every_page_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    done = built(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {path: path.read_text(encoding="utf-8") for path in (tmp_path / "build/site").rglob("*.html")}
    assert [str(path) for path, text in pages.items() if LOADED.search(text)] == []
    assert LOADED.search('<script defer src="https://example.org/x.js">')
    menu = set(re.findall(r'href="\./([\w-]+)/" class="md-nav__link"', pages[tmp_path / "build/site/index.html"]))
    titles = {path.stem for path in (REPOSITORY / "docs").glob("*.md")}
    assert len(titles) > 25
    assert titles - menu == set()


def test_the_site_with_a_broken_link_is_not_built(tmp_path: Path) -> None:
    done = built(tmp_path, "\nSee [nothing](install.md#nothing).\n")
    assert done.returncode != 0
    assert "anchor does not exist" in done.stderr


def test_the_pages_agree_with_the_registry_on_what_is_converted() -> None:
    models, limits = ((REPOSITORY / "docs" / name).read_text(encoding="utf-8") for name in ("models.md", "limits.md"))
    assert set(re.findall(r"^\| `([\w-]+)` \|", models, re.MULTILINE)) >= {kind.name for kind in KINDS}
    (denied,) = re.findall(r"- \*\*Models\*\*:.*?only:(.*?\.) ", limits, re.DOTALL)
    assert "no mixtures of experts" in " ".join(denied.split())
    families = [family.replace("_", "") for kind in KINDS for family in kind.model_types]
    assert [family for family in families if family.lower() in denied.lower().replace("-", "")] == []
