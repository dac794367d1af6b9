"""The table of docs/reliability.md: each promise that tests prove has a section, and the tests in the table exist."""

import re

from tests.faults.report import BEGIN, DOCUMENT, END, PROMISES
from tests.servers import REPOSITORY


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
