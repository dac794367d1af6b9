"""The phases of the server's life, from the first port to the last answer, and the outcomes of its reloads."""

import enum


class Phase(enum.Enum):
    """The server's phase."""

    LOADING = "loading"
    SERVING = "serving"
    RECOVERING = "recovering"  # an engine has failed and is being restarted; other models' calls are answered
    DRAINING = "draining"  # asked to stop; still answers
    FAILED = "failed"  # an engine can't be restarted: the process is about to exit

    @property
    def is_ready(self) -> bool:
        """Return whether the server accepts calls."""
        return self is Phase.SERVING

    @property
    def is_alive(self) -> bool:
        """Return whether a new process would not help."""
        return self is not Phase.FAILED


class ReloadOutcome(enum.Enum):
    """The outcome of checking the models on disk for changes."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"  # something was loaded or retired, and nothing rejected
    FAILED = "failed"  # the disk, or a new bundle on it, could not be read or loaded
