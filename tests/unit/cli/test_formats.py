"""Extracting texts from lines, and inserting translations."""

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.cli.command_error import CommandError
from service.cli.formats import Documents, Format, JsonField, TextLines, TsvColumn, render
from service.cli.lines import Line, read_document, read_lines

EXAMPLES = settings(derandomize=True, max_examples=40, deadline=None)
TEXT = st.text(
    alphabet=st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from('\r\n\t\u2028\x85"\\\u00e9😀'))
)
CELL = TEXT.map(lambda text: "".join(text.split("\t")).replace("\n", ""))
KEY = st.sampled_from(["a", "de", "text ", "é", "", '"'])
VALUE: Any = st.sampled_from([None, True, -1.5e300, 10**30, float("nan"), "ü}", [1, {"text": "a,"}], {"text": []}, {}])
ENDING = st.sampled_from(["\n", "\r\n"])


def converted(source: str, form: Format, translate: Any = lambda text: text) -> str:
    records = map(form.record, read_lines(io.BytesIO(source.encode())))
    return "".join(render(record, translate(record.text), form) for record in records)


def marked(text: str) -> str:
    """Return a translation that would end records; empty text stays empty, as on the server."""
    return f"<{text}\t\n>" if text else ""


def without_last_line_feed(source: str, is_cut: bool) -> str:
    return source.removesuffix("\n").removesuffix("\r") if is_cut else source


@st.composite
def tables(draw: Any) -> tuple[str, int]:
    """Generate lines that are empty or have at least some number of columns; return them with that number."""
    column = draw(st.integers(1, 3))
    rows = draw(st.lists(st.tuples(st.lists(CELL, min_size=column, max_size=5), ENDING), max_size=6))
    source = "".join("\t".join(row) + ending for row, ending in rows)
    return without_last_line_feed(source, draw(st.booleans())), column


@st.composite
def objects(draw: Any) -> str:
    """Generate lines of JSON with a field `text`, written in many ways."""
    lines = []
    for _ in range(draw(st.integers(0, 4))):
        before, after = (draw(st.dictionaries(KEY, VALUE, max_size=3)) for _ in range(2))
        document = before | {"text": draw(TEXT)} | after
        separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " :  ")]))
        line = json.dumps(document, ensure_ascii=draw(st.booleans()), separators=separators)
        lines.append(draw(st.sampled_from(["", " "])) + line + draw(ENDING))
        lines += draw(st.sampled_from([[], ["\n"], [" \r\n"]]))
    return without_last_line_feed("".join(lines), draw(st.booleans()))


@given(TEXT)
@EXAMPLES
def test_repeated_lines_are_the_file(source: str) -> None:
    assert converted(source, TextLines()) == source


@given(TEXT)
@EXAMPLES
def test_a_repeated_document_is_the_file(source: str) -> None:
    lines = list(read_document(io.BytesIO(source.encode())))
    assert "".join(render(Documents().record(line), line.text, Documents()) for line in lines) == source
    assert len(lines) == bool(source)


@given(tables())
@EXAMPLES
def test_repeated_columns_are_the_file(table: tuple[str, int]) -> None:
    source, column = table
    assert converted(source, TsvColumn(column)) == source


@given(tables())
@EXAMPLES
def test_one_column_is_replaced_or_appended(table: tuple[str, int]) -> None:
    source, column = table
    replaced = converted(source, TsvColumn(column), marked)
    appended = converted(source, TsvColumn(column, appends=True), marked)
    for before, after, longer in zip(
        *(list(read_lines(io.BytesIO(each.encode()))) for each in (source, replaced, appended)), strict=True
    ):
        cells = before.text.split("\t")
        translation = f"<{cells[column - 1]}  >" if before.text and cells[column - 1] else ""
        assert (after.ending, longer.ending) == (before.ending, before.ending)
        assert after.text.split("\t") == ([*cells[: column - 1], translation, *cells[column:]] if before.text else [""])
        assert longer.text.split("\t") == ([*cells, translation] if before.text else [""])


@given(objects())
@EXAMPLES
def test_repeated_fields_are_the_file(source: str) -> None:
    assert converted(source, JsonField("text", "text")) == source


@given(objects(), st.sampled_from(["text", "de", "a"]))
@EXAMPLES
def test_one_field_is_written_and_all_others_stay(source: str, target: str) -> None:
    written = converted(source, JsonField("text", target), marked)
    lines = [list(read_lines(io.BytesIO(each.encode()))) for each in (source, written)]
    for before, after in zip(*lines, strict=True):
        assert before.ending == after.ending
        if before.text.strip():
            expected = json.loads(before.text)
            expected[target] = marked(expected["text"])
            assert json.dumps(json.loads(after.text)) == json.dumps(expected)  # in this order; NaN does not equal NaN
        else:
            assert after.text == before.text


def test_numbers_stay_as_they_are_written() -> None:
    line = f'{{"n": 1.50e+3 , "text":"a", "big": {"9" * 5000}, "text": "b", "x": NaN}}\n'
    assert converted(line, JsonField("text", "text"), str.upper) == line.replace('"b"', '"B"')
    assert converted(line, JsonField("text", "n"), str.upper) == line.replace("1.50e+3", '"B"')


def test_a_translation_never_makes_more_lines() -> None:
    assert converted("a\n", TextLines(), lambda _: "x\ny") == "x y\n"
    assert converted('{"text": "a\\nb"}\n', JsonField("text", "text"), str.upper) == '{"text": "A\\nB"}\n'
    assert render(Documents().record(Line(1, "a", "\n")), "x\ny", Documents()) == "x\ny\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 is not JSON: Expecting property name"),
        ('{"text": "a"} x', "line 2 is not JSON: Extra data"),
        ("[" * 100_000, "line 2 is not JSON"),
        ('["text"]', "line 2 is JSON, but not an object; give one in braces per line."),
        ('{"a": 1, "b": "text"}', "line 2 has no field 'text'; its fields are 'a', 'b'."),
        ("{}", "line 2 has no field 'text'; its fields are none."),
        ('{"text": null}', "line 2 has null in field 'text'; it must be a string."),
        ('{"text": 12}', "line 2 has 12 in field 'text'; it must be a string."),
        ('{"text": {"text": "a"}}', 'line 2 has {"text": "a"} in field'),
        ('{"text": "\\ud83d"}', "line 2 has half a surrogate pair in field 'text'"),
    ],
)
def test_a_bad_line_of_json_is_named(line: str, message: str) -> None:
    form = JsonField("text", "text")
    assert form.record(Line(1, '{"text": "\\ud83d\\ude00"}', "\n")).text == "😀"
    with pytest.raises(CommandError) as raised:
        form.record(Line(2, line, "\n"))
    assert str(raised.value).startswith(message)
    assert raised.value.exit_code == 65


def test_a_line_of_too_few_columns_is_named() -> None:
    with pytest.raises(CommandError, match="line 7 has 2 columns, separated by tabs; --column is 3"):
        TsvColumn(3).record(Line(7, "a\tb", "\n"))
