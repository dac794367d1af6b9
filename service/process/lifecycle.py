"""The phases of the server's life, from the first port to the last answer, and what may come of its reloads."""

import enum


class Phase(enum.Enum):
    """Where the server stands."""

    LOADING = "loading"
    SERVING = "serving"
    RECOVERING = "recovering"  # an engine has failed and is being restarted; other models' calls are answered
    DRAINING = "draining"  # asked to stop; still answers
    FAILED = "failed"  # an engine can't be brought back: the process is about to end

    @property
    def is_ready(self) -> bool:
        """Whether the server wants calls."""
        return self is Phase.SERVING

    @property
    def is_alive(self) -> bool:
        """Whether a new process would not help."""
        return self is not Phase.FAILED


class ReloadOutcome(enum.Enum):
    """What a look at the models on disk led to."""

    UNCHANGED = "unchanged"
    CHANGED = "changed"  # something was loaded or retired, and nothing refused
    FAILED = "failed"  # the disk, or a bundle that is new on it, could not be read or loaded
