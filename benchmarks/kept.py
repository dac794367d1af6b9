"""Results of searches, kept for this machine: a search is made once for each kind of CPU and each model."""

import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.report import cpu_name

FOLDER = Path("build/bench/kept")
Found = list[dict[str, Any]]


def kept(name: str, threads: int, say: Callable[[str], None], search: Callable[[], Found]) -> Found:
    """Return what the search of that name once found here, or what it finds now. Delete the file to search again."""
    version = importlib.metadata.version("ctranslate2")
    path = FOLDER / f"{name}, {cpu_name().replace('/', '-')}, {threads} threads, CTranslate2 {version}.json"
    if path.exists():
        say(f"{name}: as found before ({path})")
    else:
        say(f"{name}: searched for once on this machine")
        found = search()
        FOLDER.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    document: Found = json.loads(path.read_text(encoding="utf-8"))
    return document
