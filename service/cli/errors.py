"""Errors that end a command with one line, and exit codes: BSD sysexits where they fit, else click's and shells'."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit code of a command."""

    OK = 0
    UNFIT = 1  # of `doctor`: a server would not work here
    USAGE = 2  # the command line is wrong, or names a language or model that is not served
    DATA = 65  # the input is wrong: not UTF-8, or rejected by the server
    NO_INPUT = 66  # the input file can't be opened
    NO_SERVER = 69  # no answer at the server's address, or the server is not ready
    SOFTWARE = 70  # an internal error, here or in the server
    PORT = 71  # a port can't be listened on
    CANT_CREATE = 73  # the output file can't be created
    IO_ERROR = 74  # reading or writing failed halfway
    TRY_LATER = 75  # the server stayed overloaded, the call timed out, or another process writes the output
    NOT_SECURE = 76  # no TLS connection: certificates do not match, or only one side uses TLS
    NO_PERMISSION = 77  # the server requires a valid API key
    # A bundle is missing, damaged or fails its self-test; memory runs out; a setting, or a file it names, is invalid.
    CONFIG = 78
    INTERRUPTED = 130  # Ctrl-C
    BROKEN_PIPE = 141  # the reader of the output has closed it


# gRPC status of a failed call -> exit code; every other status is the server's own fault.
OF_STATUS = {
    "INVALID_ARGUMENT": ExitCode.DATA,
    "NOT_FOUND": ExitCode.USAGE,
    "UNAUTHENTICATED": ExitCode.NO_PERMISSION,
    "UNAVAILABLE": ExitCode.NO_SERVER,
    "RESOURCE_EXHAUSTED": ExitCode.TRY_LATER,
    "DEADLINE_EXCEEDED": ExitCode.TRY_LATER,
    "CANCELLED": ExitCode.TRY_LATER,
}


class CommandError(Exception):
    """An error and its remedy, in one line."""

    def __init__(self, message: str, exit_code: ExitCode) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class OutputClosed(Exception):
    """The reader of standard output has closed it."""
