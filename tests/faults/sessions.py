"""Where faults are planted: the graphs' sessions, whichever kind of graphs a server runs."""

from typing import Any

from service.engine.runtime.fused_runner import FusedRunner
from service.engine.runtime.session import GraphSession


def session_of(runner: Any, graph: str) -> GraphSession:
    """Return the session of a runner's "encoder" or "decoder_step"."""
    if isinstance(runner, FusedRunner):
        return {"encoder": runner._encoder, "decoder_step": runner._decoder}[graph]
    session: GraphSession = getattr(runner, f"_{graph}").session(is_alone=True)
    return session
