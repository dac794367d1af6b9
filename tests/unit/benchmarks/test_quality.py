import pytest
from benchmarks.quality import held_out_references, quality_of

from benchmarks.workload import held_out_texts

REFERENCES = ["Das ist ein kleines rotes Haus.", "Wo ist bitte der Bahnhof?", "Gute Nacht und bis morgen!"]


def test_every_text_has_a_reference() -> None:
    assert len(held_out_references()) == len(held_out_texts())


def test_the_references_themselves_are_perfect() -> None:
    found = quality_of([(2, REFERENCES[2]), (0, REFERENCES[0])], REFERENCES)
    assert found == {"bleu": pytest.approx(100), "chrf": pytest.approx(100), "judged_texts": 2, "unequal_texts": 0}


def test_a_text_counts_once_and_different_answers_to_it_are_seen() -> None:
    found = quality_of([(0, REFERENCES[0]), (0, "Ganz anders."), (1, "Nein."), (1, "Nein.")], REFERENCES)
    assert (found["judged_texts"], found["unequal_texts"]) == (2, 1)
    assert found["chrf"] < 100


def test_no_answers_have_no_quality() -> None:
    assert quality_of([], REFERENCES) == {}
