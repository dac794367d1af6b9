"""Texts designed to be slow: planning reaches a checkpoint soon, whatever they are, in linear time. Limits on terms."""

import contextlib
import gc
import time
from pathlib import Path
from typing import Any

import pytest

from service.domain.checkpoint import checkpoints
from service.domain.errors import InvalidRequest
from service.domain.translation import MimeType, Term, TranslationRequest
from service.faces.dragoman.messages import request_from_pb
from service.faces.fields import MAX_TERMS
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.text.terms import TermIndex
from service.translation.checks import AnswerSize, check_request
from service.translation.planning import Planner
from tests.unit.translation.letters import PAIR, SYMBOLS, LetterTokenizer, letters_manifest

NUM_CHARACTERS = 65_536
# CPU time, which other load does not change. The first has to hold for CPUs 20 times slower than ours.
MAX_GAP_SECONDS = 0.3
MAX_SECONDS = 10.0

# HTML is planned like plain text between its tags, so a unit is of one kind.
OF_HTML = ("<b>", "<p>a", "<b>a</b>", "<code>a</code> b ", "&#1;", "{}", "a", " ")
OF_TEXT = (
    *("{%", "{}", "a {} ", ":a", "http://a(", "<b>", " ", "a\n", "1\n", "- ", '"', "\u3002", "\u6f22", "a", "a\u200d"),
    *("e\u0301", "\ufdfa", "\U0001f355 ", "Ab. "),
)


@pytest.mark.parametrize(
    ("unit", "mime_type"),
    [*((unit, MimeType.HTML) for unit in OF_HTML), *((unit, MimeType.PLAIN) for unit in OF_TEXT)],
)
def test_planning_passes_checkpoints(tiny_bundle: Path, unit: str, mime_type: MimeType) -> None:
    gap, seconds = planning_seconds(tiny_bundle, unit * (NUM_CHARACTERS // len(unit)), mime_type=mime_type)
    assert gap < MAX_GAP_SECONDS
    assert seconds < MAX_SECONDS


def test_planning_with_terms_passes_checkpoints(tiny_bundle: Path) -> None:
    terms = tuple(Term("!" * length, "x") for length in range(1, 200))
    gap, seconds = planning_seconds(tiny_bundle, "!" * NUM_CHARACTERS, terms=terms)
    assert gap < MAX_GAP_SECONDS
    assert seconds < MAX_SECONDS


def planning_seconds(tiny_bundle: Path, text: str, **options: Any) -> tuple[float, float]:
    """Return the longest time between two checkpoints, and the total."""
    request = TranslationRequest((text,), "en", "de", **options)
    manifest = letters_manifest(tiny_bundle, max_source_tokens=128, symbols=SYMBOLS)
    terms = [TermIndex(request.terms)] if request.terms else []
    planner = Planner(request, manifest, PAIR, LetterTokenizer(), 4096, AnswerSize(2**21), terms)
    gc.disable()  # otherwise what earlier tests left would be scanned repeatedly, which takes half a second
    began = last = time.thread_time()
    gap = 0.0

    def passed() -> None:
        nonlocal last, gap
        now = time.thread_time()
        gap = max(gap, now - last)
        last = now

    with checkpoints(passed):
        with contextlib.suppress(InvalidRequest):
            planner.plan(0)
        passed()
    gc.enable()
    return gap, last - began


def test_a_caller_may_send_so_many_terms_and_a_glossary_may_hold_more() -> None:
    terms = tuple(Term(f"term {number}", "Wort") for number in range(MAX_TERMS + 1))
    check_request(TranslationRequest(("a",), "en", "de", terms=terms), max_characters=1)
    message = pb.TranslateRequest(texts=["a"], terms=[pb.Term(source=term.source) for term in terms])
    with pytest.raises(InvalidRequest, match="terms has 1025 entries; allowed: 1024"):
        request_from_pb(message, 0.0)
