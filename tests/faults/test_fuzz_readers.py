"""Every reader of foreign bytes rejects them with its own errors or keeps its promises: see tests/fuzz."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from tests.fuzz import runner
from tests.fuzz.bounded import MAX_BYTES, TooSlow, bounded
from tests.fuzz.planted import planted, planted_slow
from tests.fuzz.targets import CORPUS, PLANTED, TARGETS
from tests.fuzz.words import WORDS
from tests.nasty_texts import NASTY_TEXTS
from tests.patience import patient
from tests.servers import REPOSITORY

NASTY = tuple(text.encode()[:MAX_BYTES] for text in NASTY_TEXTS)
# Choices first, then meaningful and other words.
INPUTS = st.one_of(
    st.builds(
        lambda choices, parts: choices + "".join(parts).encode(),
        st.binary(max_size=6),
        st.lists(st.one_of(st.sampled_from((*WORDS, "\n")), st.text(max_size=6)), max_size=12),
    ),
    st.binary(max_size=200),
)

_SECONDS = 0.03  # of CPU time for nasty texts, and for other inputs
_GUIDED_SECONDS = 2.0
GUIDED = sorted(TARGETS)[::9]

needs_atheris = pytest.mark.skipif(not runner.is_available(), reason="atheris has no wheel for this platform")


@pytest.mark.parametrize("name", TARGETS)
def test_each_reader_keeps_its_promises(name: str) -> None:
    """All inputs that ever failed, and as many others as a few seconds of CPU time allow."""
    target = bounded(TARGETS[name])
    seeds = [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]
    for data in seeds:
        target(data)
    num_tried = 0

    def tried(data: bytes) -> None:
        nonlocal num_tried
        if time.process_time() < end:  # a checkpoint takes a tenth of a second
            target(data)
            num_tried += 1

    end = time.process_time() + _SECONDS
    for data in NASTY:
        tried(data)

    @settings(max_examples=50, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(INPUTS)
    def any_input(data: bytes) -> None:
        tried(data)

    end = time.process_time() + _SECONDS
    any_input()
    assert num_tried > 0


def test_a_corpus_has_a_target() -> None:
    assert {folder.name for folder in CORPUS.iterdir()} <= set(TARGETS)


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Return the results of guided fuzzing, by name, for some of the readers and for those with injected bugs.

    The time is fixed, so a slow machine tries fewer inputs. As it takes a while to start, all tests share one session.
    """
    arguments = (*GUIDED, *PLANTED, "--seconds", str(round(patient(_GUIDED_SECONDS))))
    found = _fuzz(tmp_path_factory.mktemp("fuzz"), 1, *arguments)
    return {session["target"]: session for session in found}


@pytest.mark.full
@needs_atheris
def test_a_guided_search_finds_nothing(sessions: dict[str, dict[str, Any]]) -> None:
    assert [sessions[name]["findings"] for name in GUIDED] == [[]] * len(GUIDED)
    assert min(sessions[name]["num_runs"] for name in GUIDED) > 0


@pytest.mark.full
@needs_atheris
def test_a_guided_search_finds_planted_bugs(sessions: dict[str, dict[str, Any]]) -> None:
    (wrong,), (slow,) = (sessions[name]["findings"] for name in PLANTED)
    with pytest.raises(AssertionError, match="the planted bug"):
        planted(Path(wrong).read_bytes())
    with pytest.raises(TooSlow, match="allowed: 1 s"):
        bounded(planted_slow)(Path(slow).read_bytes())


@pytest.mark.full
@pytest.mark.timeout(4 * 3600)
@needs_atheris
def test_a_longer_guided_search_finds_nothing(tmp_path: Path) -> None:
    _fuzz(tmp_path, 0, "all", "--seconds", "120", timeout_seconds=4 * 3600)


@pytest.mark.parametrize(
    ("mime_type", "unit"),
    [(0, "{{a{}}}"), (0, "{{a{}}} word "), (0, "A. "), (0, "x"), (1, "<code>"), (1, "<b>"), (1, "&"), (1, "a\u0301")],
)
def test_the_longest_text_takes_linear_time(mime_type: int, unit: str) -> None:
    # Quadratic code takes minutes for 100,000 characters.
    text = "".join(unit.format(number) for number in range(100_000 // len(unit.format(50_000))))
    data = bytes([mime_type, 1, 0, 0]) + text.encode()
    started = time.process_time()
    TARGETS["documents"](data)
    assert time.process_time() - started < 20


def test_random_inputs_find_planted_bugs() -> None:
    target = bounded(planted)

    def fails(data: bytes) -> bool:
        try:
            target(data)
        except AssertionError:
            return True
        return False

    assert find(st.sampled_from([word.encode() + b"-->" for word in WORDS]), fails) == b"<!---->"


def _fuzz(folder: Path, status: int, *arguments: str, timeout_seconds: float = 110) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.fuzz", *arguments, "--output", str(folder)]
    ended = subprocess.run(
        command, cwd=REPOSITORY, env=dict(os.environ), capture_output=True, text=True, timeout=patient(timeout_seconds)
    )
    assert ended.returncode == status, ended.stdout + ended.stderr[-2000:]
    return json.loads((folder / "sessions.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]
