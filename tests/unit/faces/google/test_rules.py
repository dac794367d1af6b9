"""Paths of Cloud Translation v3."""

import pytest

from service.faces.google.methods import REQUESTS
from service.faces.google.rules import ADVICE, RULES, UNSUPPORTED_RULES, Rule
from service.faces.grpc.pb.google.cloud.translation.v3 import translation_service_pb2 as pb


def test_every_method_has_a_rule() -> None:
    service = pb.DESCRIPTOR.services_by_name["TranslationService"]
    assert {rule.name for rule in RULES} == set(REQUESTS) == {method.name for method in service.methods}
    assert {rule.name for rule in UNSUPPORTED_RULES} == {method for method, _ in ADVICE.values()}


def test_requests_are_those_of_the_service() -> None:
    for method in pb.DESCRIPTOR.services_by_name["TranslationService"].methods:
        assert REQUESTS[method.name].DESCRIPTOR is method.input_type


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.template)
def test_the_field_in_a_path_is_a_text_of_the_request(rule: Rule) -> None:
    field, _ = rule.bound({f"part{number}": "a" for number in range(4)})
    assert getattr(REQUESTS[rule.name](), field) == ""


def test_a_path_has_a_part_for_each_star() -> None:
    rule = Rule("GET", "/v3/{name=projects/*/locations/*/glossaries/*}", "GetGlossary")
    assert rule.path == "/v3/projects/{part0}/locations/{part1}/glossaries/{part2}"
    parts = {"part0": "p", "part1": "l", "part2": "{part1} %"}
    assert rule.bound(parts) == ("name", "projects/p/locations/l/glossaries/{part1} %")


def test_a_path_goes_on_after_its_field() -> None:
    rule = Rule("POST", "/v3/{parent=projects/*}:translateText", "TranslateText")
    assert rule.path == "/v3/projects/{part0}:translateText"
    assert rule.bound({"part0": "p"}) == ("parent", "projects/p")
    assert rule.has_body
    assert not Rule("GET", rule.template, rule.name).has_body
