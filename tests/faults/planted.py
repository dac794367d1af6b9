"""Faults that several tests inject: in the runs of graphs, whichever kind of graphs a server runs, or in a worker."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import grpc
import pytest

from service.bundle import fused_io, graph_io
from service.engine.runner import RunLimits
from service.engine.runtime.session import Binding, GraphSession
from service.engine.search import Outcome
from service.engine.worker import Worker
from tests.grpc_calls import outcome, request_of, stub_of
from tests.patience import patient
from tests.servers import distinct_texts

BOUND_SECONDS = patient(20.0)  # for what takes milliseconds on an idle machine: nothing hangs

Answer = tuple[grpc.StatusCode, str]
Run = Callable[[Binding], None]


def ask(address: str, texts: Sequence[str] = (), timeout: float = BOUND_SECONDS, **fields: Any) -> Answer:
    """Make one call, by default with a text that no other has; return its status and details."""
    with stub_of(address, enable_retries=0) as stub:
        return outcome(stub.Translate, request_of(texts or distinct_texts(1), **fields), timeout)


def plant(patch: pytest.MonkeyPatch, graph: str, run: Callable[[Run, Binding], None]) -> None:
    """Replace all runs of "encoder", "decoder_step" or "alignment": `run` gets what runs it really, and what on."""
    work = GraphSession.run

    def planted(session: GraphSession, binding: Binding) -> None:
        if _graph_of(binding) == graph:
            run(partial(work, session), binding)
        else:
            work(session, binding)

    patch.setattr(GraphSession, "run", planted)


def _graph_of(binding: Binding) -> str:
    if graph_io.TARGET_IDS in binding.inputs:
        return "alignment"
    is_step = graph_io.NUM_CANDIDATES in binding.inputs or fused_io.DECODE_INPUTS[0] in binding.inputs
    return "decoder_step" if is_step else "encoder"


def swap_answers(patch: pytest.MonkeyPatch) -> None:
    """Exchange the tokens of two sequences that end in the same step."""
    step = Worker.step

    def swapped(self: Worker, limits: RunLimits) -> Outcome:
        result = step(self, limits)
        if len(result.finished) > 1:
            (one, a), (other, b), *rest = result.finished
            result.finished = [(one, b), (other, a), *rest]
        return result

    patch.setattr(Worker, "step", swapped)
