"""Exit codes."""

import grpc

from service.cli import exit_codes


def test_codes_are_distinct_and_no_signals_of_others() -> None:
    codes = {name: value for name, value in vars(exit_codes).items() if name.isupper() and isinstance(value, int)}
    assert len(set(codes.values())) == len(codes)
    assert all(0 <= code <= 255 for code in codes.values())


def test_the_table_knows_real_status_codes_only() -> None:
    assert set(exit_codes.OF_STATUS) <= {code.name for code in grpc.StatusCode}
    assert "INTERNAL" not in exit_codes.OF_STATUS  # like any other status, it gets the code for the server's own faults
