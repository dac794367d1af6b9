"""The lines of the large file."""

from benchmarks.cli_file import varied


def test_lines_differ_and_are_the_same_in_every_run() -> None:
    texts = ["Where is it?", "Save the file."]
    lines = varied(texts, 12)
    assert len(set(lines)) == len(lines) == 12
    assert lines == varied(texts, 12)
    assert all(len(line.split()) == 3 for line in lines)
