"""Checks that happen once per call, whichever way it takes through the server."""

from collections import Counter
from typing import Any

import pytest

from dragoman_client import MimeType, Priority
from service.text.markup.lexer import tokens
from tests.servers import Serve, distinct_texts


@pytest.mark.parametrize(("priority", "looks"), [(Priority.NORMAL, 1), (Priority.HIGH, 2)])
def test_the_queue_is_looked_at_once_for_a_call_of_normal_priority(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, priority: Priority, looks: int
) -> None:
    server = serve(cache_mib=0)
    engine = server.server.models[0].engine
    looked: Counter[str] = Counter()
    check_queue = engine.check_queue

    def counted(asked: Any, origin: Any) -> None:
        looked[asked.value] += 1
        check_queue(asked, origin)

    monkeypatch.setattr(engine, "check_queue", counted)
    with server.client() as client:
        client.translate(distinct_texts(1), "en", "de", priority=priority)
    # On arrival, a message is not parsed until the queue is known to be short enough for a call of normal priority.
    assert looked.total() == looks
    assert looked[priority.value] == 1


def test_html_whose_language_is_detected_is_parsed_once(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    server = serve()
    parsed: list[str] = []

    def counted(html: str) -> Any:
        parsed.append(html)
        return tokens(html)

    monkeypatch.setattr("service.text.markup.document.tokens", counted)
    texts = [f"<p>The {text}</p>" for text in distinct_texts(2)] + ["<p>123</p>"]
    with server.client() as client:
        translations = client.translate(texts, "", "de", mime_type=MimeType.HTML)
    assert sorted(parsed) == sorted(texts)
    assert [each.detected_language_code for each in translations[:2]] == ["en", "en"]
