"""The limit on terms applies to callers' terms, not to those of a glossary on the server."""

import pytest

from service.domain.errors import InvalidRequest
from service.domain.translation import Term, TranslationRequest
from service.faces.dragoman.messages import request_from_pb
from service.faces.fields import MAX_TERMS
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.translation.checks import check_request


def test_a_caller_may_send_so_many_terms_and_a_glossary_may_hold_more() -> None:
    terms = tuple(Term(f"term {number}", "Wort") for number in range(MAX_TERMS + 1))
    check_request(TranslationRequest(("a",), "en", "de", terms=terms), max_characters=1)
    message = pb.TranslateRequest(texts=["a"], terms=[pb.Term(source=term.source) for term in terms])
    with pytest.raises(InvalidRequest, match="terms has 1025 entries; allowed are 1024"):
        request_from_pb(message, 0.0)
