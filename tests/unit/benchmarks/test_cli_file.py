"""The lines of the large file."""

from benchmarks.cli_file import Turn, varied


def test_lines_differ_and_are_the_same_in_every_run() -> None:
    texts = ["Where is it?", "Save the file."]
    lines = varied(texts, 12)
    assert len(set(lines)) == len(lines) == 12
    assert lines == varied(texts, 12)
    assert all(len(line.split()) == 3 for line in lines)


def test_a_turns_share_compares_rates() -> None:
    assert Turn(tokens=900, seconds=3.0, bare_tokens=400, bare_seconds=1.0).share == 0.75
