"""Reports of documents: what is counted, what is named, and how much of it a header has room for."""

import json

from service.documents.document import Doubt
from service.documents.report import MAX_PLACES, Report, compact_json


def test_flags_and_reasons_are_counted_apart() -> None:
    report = Report(["a note."])
    assert report.notes == ["a note."]
    report.add(2, "line 7", Doubt(("numbers", "term")))
    report.add(1, "line 3", Doubt(("numbers",), "ratio"))
    report.add(3, "line 9", Doubt((), "ratio"))
    report.add(4, "line 10", None)
    assert report.notes == ["a note.", "2 texts were flagged: 2 numbers, 1 term.", "2 texts were cut off: 2 ratio."]
    assert report.to_json() == {
        "num_texts": 4,
        "flags": {"numbers": 2, "term": 1},
        "finish_reasons": {"ratio": 2},
        "texts": [
            {"place": "line 3", "flags": ["numbers"], "finish_reason": "ratio"},
            {"place": "line 7", "flags": ["numbers", "term"], "finish_reason": "stop"},
            {"place": "line 9", "flags": [], "finish_reason": "ratio"},
        ],
        "left_out": ["a note."],
    }


def test_a_report_is_bounded_and_its_header_more_so() -> None:
    report = Report(["ä" * 5000])
    for number in range(MAX_PLACES * 2):
        report.add(number, f"line {number}, column 'ö'", Doubt(("placeholder",)))
    told = report.to_json()
    assert (told["flags"], len(told["texts"])) == ({"placeholder": MAX_PLACES * 2}, MAX_PLACES)
    line = compact_json(told, 4096)
    assert line.isascii()
    assert line.isprintable()
    assert 3900 < len(line) <= 4096
    assert json.loads(line)["texts"] == told["texts"][: len(json.loads(line)["texts"])]
