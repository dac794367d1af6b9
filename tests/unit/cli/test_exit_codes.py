"""Exit codes."""

import grpc

from service.cli.exit_codes import OF_STATUS, ExitCode


def test_codes_are_distinct_and_no_signals_of_others() -> None:
    assert len(ExitCode) == len(ExitCode.__members__)  # of two with one number, one would be an alias
    assert all(0 <= code <= 255 for code in ExitCode)


def test_the_table_knows_real_status_codes_only() -> None:
    assert set(OF_STATUS) <= {code.name for code in grpc.StatusCode}
    assert "INTERNAL" not in OF_STATUS  # like any other status, it gets the code for the server's own faults
