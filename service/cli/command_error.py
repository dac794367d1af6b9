"""Exceptions that end a command early: with one line on standard error and an exit code."""


class CommandError(Exception):
    """An error and its remedy, in one line; `exit_code` is an `ExitCode`."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class OutputClosed(Exception):
    """The reader of standard output has closed it."""
