"""What the client rejects without asking a server: unknown keywords and values of the wrong type."""

from typing import Any

import pytest

from dragoman_client import Client, MimeType, Options, Placeholder, Priority, SplitSentences, Term
from dragoman_client.messages import request_to_pb
from dragoman_client.pb import translation_pb2 as pb

NOBODY = "127.0.0.1:1"


def request(texts: Any = ("Hello",), **fields: Any) -> pb.TranslateRequest:
    return request_to_pb(texts, "en", "de", fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"modle": "m"}, "modle is not an argument of this call; did you mean model?"),
        ({"beam_size": 4}, "beam_size is not an argument of this call; give options=Options(beam_size=...)."),
        ({"zzz": 1}, "zzz is not an argument of this call; allowed: model, model_version, options, "),
        ({"texts": "Hello"}, "texts is 'Hello'; give a list, such as ['Hello']."),
        ({"texts": b"Hello"}, "texts is b'Hello'; give a list, such as [b'Hello']."),
        ({"texts": 3}, "texts is 3; give a list of str."),
        ({"texts": None}, "texts is None; give a list of str."),
        ({"texts": ["a", 3]}, "texts[1] is 3; give a string."),
        ({"texts": [["a"]]}, "texts[0] is ['a']; give a string."),
        ({"texts": "a" * 100}, f"texts is '{'a' * 56}...; give a list, such as ['{'a' * 56}...]."),
        ({"target_prefixes": "Wo"}, "target_prefixes is 'Wo'; give a list, such as ['Wo']."),
        ({"terms": Term("file")}, "terms is Term(source='file', target=None, case_sensitive=False); give a list, su"),
        ({"terms": ["file"]}, "terms[0] is 'file'; give Term(...)."),
        ({"options": {"beam_size": 4}}, "options is {'beam_size': 4}; give Options(...)."),
        ({"options": 4}, "options is 4; give Options(...)."),
        ({"priority": "high"}, "priority is 'high'; give one of Priority.LOW, Priority.NORMAL, Priority.HIGH."),
        ({"mime_type": "text/html"}, "mime_type is 'text/html'; give one of MimeType.PLAIN, MimeType.HTML."),
        ({"split_sentences": True}, "split_sentences is True; give one of SplitSentences.OFF, "),
        ({"strict": "yes"}, "strict is 'yes'; give True or False."),
        ({"model": None}, "model is None; give a string."),
        ({"labels": ["a"]}, "labels is ['a']; give a dict of strings."),
        ({"labels": {"a": 1}}, "labels holds 1; give a dict of strings."),
    ],
)
def test_a_wrong_call_is_refused_in_one_line(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as raised:
        request(**fields)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


def test_every_call_is_checked_before_it_is_made() -> None:
    with Client(NOBODY) as client:
        for call in (client.translate, client.stream):
            with pytest.raises(TypeError, match="texts is 'Hello'"):
                call("Hello", "en", "de")
            with pytest.raises(TypeError, match="modle is not an argument"):
                call(["Hello"], "en", "de", modle="m")  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="texts is 'Hello'"):
            client.detect("Hello")


def test_options_refuse_what_they_do_not_have() -> None:
    with pytest.raises(TypeError, match="beams"):
        Options(beams=4)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        Options(4)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("options", "error", "name"),
    [
        (Options(beam_size=2**40), ValueError, "beam_size"),
        (Options(seed=-1), ValueError, "seed"),
        (Options(temperature="hot"), TypeError, "temperature"),  # type: ignore[arg-type]
    ],
)
def test_an_option_that_the_protocol_can_not_hold_is_named(options: Options, error: type[Exception], name: str) -> None:
    with pytest.raises(error, match=rf"^options\.{name} is "):
        request(options=options)


def test_a_call_without_keywords_sets_nothing() -> None:
    expected = pb.TranslateRequest(texts=["Hello"], source_language_code="en", target_language_code="de")
    assert request() == request(options=None) == expected
    assert request(options=Options()).HasField("options")
    assert not request(options=Options()).options.ListFields()


def test_every_keyword_reaches_the_message() -> None:
    message = request(
        texts=iter(["Hello"]),
        model="m",
        model_version="2",
        options=Options(beam_size=4, temperature=0.0, seed=2**64 - 1, return_scores=False),
        priority=Priority.LOW,
        mime_type=MimeType.HTML,
        split_sentences=SplitSentences.NO_NEWLINES,
        preserve_formatting=True,
        target_prefixes=("Wo",),
        glossary="g",
        terms=[Term("file", "Akte", case_sensitive=True), Term("keys")],
        placeholders=[Placeholder("a+"), Placeholder(start="[", end="]")],
        return_alignments=True,
        strict=True,
        keep_other_languages=True,
        labels={"a": "b"},
    )
    assert message == pb.TranslateRequest(
        texts=["Hello"],
        source_language_code="en",
        target_language_code="de",
        model="m",
        model_version="2",
        options=pb.DecodingOptions(beam_size=4, temperature=0.0, seed=2**64 - 1, return_scores=False),
        priority=pb.PRIORITY_LOW,
        mime_type="text/html",
        split_sentences=pb.SPLIT_SENTENCES_NO_NEWLINES,
        preserve_formatting=True,
        target_prefixes=["Wo"],
        glossary="g",
        terms=[pb.Term(source="file", target="Akte", case_sensitive=True), pb.Term(source="keys")],
        placeholders=[pb.Placeholder(pattern="a+"), pb.Placeholder(start="[", end="]")],
        return_alignments=True,
        strict=True,
        keep_other_languages=True,
        labels={"a": "b"},
    )
    assert {field.name for field, _ in message.ListFields()} == {
        field.name for field in pb.TranslateRequest.DESCRIPTOR.fields
    }
