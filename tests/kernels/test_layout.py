from kernels.layout import HEADER, header


def test_the_header_is_written_from_the_table_of_today() -> None:
    assert HEADER.read_text(encoding="utf-8") == header(), "run `python -m kernels.layout`"
