"""The table of docs/reliability.md: each promise has its text, and what it names is there."""

import re

import pytest

from tests.faults.report import BEGIN, DOCUMENT, END, PROMISES, Proof, completed, table
from tests.servers import REPOSITORY


def proof(promise: str, test: str, form: str, cases: int, date: str = "2026-11-21", failures: int = 0) -> Proof:
    given = {"cases": cases, "failures": failures, "date": date, "commit": f"c{cases}", "numbers": {}}
    return Proof.of({"promise": promise, "test": test, "form": form, **given})


def test_promises_that_tests_prove_have_texts_and_sections() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    used = {
        promise
        for folder in ("faults", "fuzz")
        for path in (REPOSITORY / "tests" / folder).rglob("*.py")
        for promise in re.findall(r"\bproved\(\s*\"([^\"]+)\"", path.read_text(encoding="utf-8"))
    }
    assert "soak" in used  # else nothing was found
    assert used <= set(PROMISES)
    headings = re.findall(r"^## (\S+)$", document, re.MULTILINE)
    assert [heading for heading in headings if heading in PROMISES] == list(PROMISES)


def test_the_table_names_tests_that_exist() -> None:
    rows = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    paths = re.findall(r"\]\(\.\./(tests/[^)]+)\)", rows)
    assert paths, "run the tests of tests/faults, then python -m tests.faults.report"
    assert [path for path in paths if not (REPOSITORY / path).exists()] == []


def test_short_and_long_forms_of_a_file_are_one_row() -> None:
    rows = table(
        [
            proof("soak", "tests/soak", "long", 90000, "2026-11-22"),
            proof("overload", "tests/faults/test_overload.py::test_a", "short", 100),
            proof("overload", "tests/faults/test_overload.py::test_b[1]", "short", 20, "2026-11-20", failures=2),
            proof("overload", "tests/faults/test_overload.py::test_c", "long", 5000, "2026-11-19"),
        ]
    ).splitlines()[2:]
    assert [[cell.strip() for cell in row.strip("|").split("|")][1:] for row in rows] == [
        [
            "[tests/faults/test_overload.py](../tests/faults/test_overload.py)",
            "120",
            "5,000",
            "2",
            "2026-11-21",
            "c100",
        ],
        ["[tests/soak](../tests/soak)", "-", "90,000", "0", "2026-11-22", "c90000"],
    ]


def test_a_promise_without_a_text_is_refused() -> None:
    with pytest.raises(KeyError, match="'luck' has no text"):
        table([proof("luck", "tests/faults/test_luck.py", "short", 1)])


def test_only_what_is_between_the_markers_changes() -> None:
    once = completed(f"before\n{BEGIN}\nold\n{END}\nafter\n", "| new |")
    assert once == f"before\n{BEGIN}\n| new |\n{END}\nafter\n"
    assert completed(once, "| new |") == once
