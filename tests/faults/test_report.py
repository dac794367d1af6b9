"""The table of docs/reliability.md: each promise that tests prove has a section, and the tests in the table exist."""

import re

import pytest

from tests.faults.report import BEGIN, DOCUMENT, END, PROMISES, Record, completed, rows_of
from tests.servers import REPOSITORY

OVERLOAD, BUNDLES = "tests/faults/test_overload.py", "tests/faults/test_corrupted_bundles.py"


def proof(promise: str, test: str, form: str, cases: int, date: str = "2026-11-21", failures: int = 0) -> Record:
    given = {"cases": cases, "failures": failures, "date": date, "commit": f"c{cases}", "numbers": {}}
    return {"promise": promise, "test": test, "form": form, **given}


def cells_of(document: str) -> list[list[str]]:
    """Return the rows of the table, from the second column on."""
    return [[cell.strip() for cell in row.strip("|").split("|")][1:] for row in document.split("\n")[5:-2]]


def test_promises_that_tests_prove_have_sections() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    used = {
        promise
        for folder in ("faults", "fuzz")
        for path in (REPOSITORY / "tests" / folder).rglob("*.py")
        for promise in re.findall(r"\bproved\(\s*\"([^\"]+)\"", path.read_text(encoding="utf-8"))
    }
    assert "soak" in used  # otherwise nothing was found
    assert used <= set(PROMISES)
    headings = re.findall(r"^## (\S+)$", document, re.MULTILINE)
    assert [heading for heading in headings if heading in PROMISES] == list(PROMISES)


def test_the_table_names_tests_that_exist() -> None:
    rows = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    paths = re.findall(r"\| `(tests/[^`]+)` \|", rows)
    assert paths, "run the tests of tests/faults, then python -m tests.faults.report"
    assert [path for path in paths if not (REPOSITORY / path).exists()] == []


def test_each_form_of_a_file_is_one_row() -> None:
    rows = rows_of(
        [
            proof("soak", "tests/soak", "long", 90000, "2026-11-22"),
            proof("overload", f"{OVERLOAD}::test_c", "long", 5000, "2026-11-19"),
            proof("overload", f"{OVERLOAD}::test_a", "short", 100),
            proof("overload", f"{OVERLOAD}::test_b[1]", "short", 20, "2026-11-20", failures=2),
        ]
    )
    assert cells_of(completed(f"{BEGIN}\n{END}\n", rows)) == [
        [f"`{OVERLOAD}`", "short", "120", "2", "2026-11-21", "c100"],
        [f"`{OVERLOAD}`", "long", "5,000", "0", "2026-11-19", "c5000"],
        ["`tests/soak`", "long", "90,000", "0", "2026-11-22", "c90000"],
    ]


def test_what_was_not_run_again_stays_while_its_test_exists() -> None:
    old = [
        proof("overload", f"{OVERLOAD}::test_a", "short", 1),
        proof("overload", f"{OVERLOAD}::test_a", "long", 2),
        proof("soak", "tests/faults/test_gone.py::test_b", "short", 3),
    ]
    document = completed(f"{BEGIN}\n{END}\n", rows_of(old))
    new = [proof("overload", f"{OVERLOAD}::test_a", "short", 4), proof("fuzz-bundles", f"{BUNDLES}::test_c", "long", 5)]
    assert [cells[1:3] for cells in cells_of(completed(document, rows_of(new)))] == [
        ["short", "4"],
        ["long", "2"],
        ["long", "5"],
    ]


def test_a_promise_without_a_section_is_rejected() -> None:
    with pytest.raises(KeyError, match="'luck' has no section"):
        rows_of([proof("luck", "tests/faults/test_luck.py", "short", 1)])
