"""The engine's settings: its limits."""

from dataclasses import dataclass

# Of a worker, until the best number is measured: enough to test a bundle, and the fewest worth a worker.
FIRST_SLOTS = 16


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Limits of one engine.

    With `max_slots` `None`, the model loader measures how many are worthwhile on this machine. `kv_capacity` is the
    maximum number of tokens per row, forced prefix included; `None` means the model's limit plus its longest prefix.
    `max_encode_tokens` bounds the padded area (rows times longest source) of an encoder run, so that running sequences
    do not stall (`pace` may lower it); a single longer source gets its own run. At most `max_waiting` sequences wait,
    each at most `max_queue_seconds`; 0 leaves that limit to `admission`. With `checks_integrity`, for tests, the engine
    fails if its state is inconsistent after a turn; with many requests, these are checked less often.
    """

    max_slots: int | None = None
    max_waiting: int = 4096
    max_queue_seconds: float = 0.0
    kv_capacity: int | None = None
    max_encode_tokens: int = 1024
    checks_integrity: bool = False

    def __post_init__(self) -> None:
        for name in ("max_slots", "max_waiting", "max_encode_tokens", "kv_capacity"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"EngineConfig.{name} is {value}; expected at least 1.")
