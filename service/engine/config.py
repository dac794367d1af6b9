"""The engine's settings: how much it holds at once."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Limits of one engine.

    `max_slots` of `None` lets the model's loader measure how many pay here. `kv_capacity` is the most tokens a row can
    hold, forced prefix included; `None` takes the model's limit plus its longest prefix. `max_encode_tokens` bounds the
    padded area (rows times longest source) of one encoder run, so that newcomers don't stall the sequences that run
    (`pace` may bound it further); a single longer source still gets a run of its own. At most `max_waiting` sequences
    wait, each as long as `max_queue_seconds`; 0 leaves that to `admission`.
    With `checks_integrity` all books are compared turn by turn, and the engine fails where they contradict each other;
    for tests.
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
