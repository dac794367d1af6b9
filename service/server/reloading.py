"""Reloads what may change while the server runs: models, glossaries, certificates and API keys."""

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from service.domain.errors import Unavailable
from service.faces.grpc.tls import ServerTls
from service.models.fleet import Fleet
from service.models.reload_plan import ReloadOutcome
from service.observe.logs import RELOADS
from service.observe.metrics import Metrics
from service.text.glossary import Glossaries
from service.translation.translator import Translator

if TYPE_CHECKING:
    from service.calls.gate import Gate

_LOG = logging.getLogger(__name__)
_RELOADS = logging.getLogger(RELOADS)


class Reloader:
    """Reloads models and glossaries, one reload at a time."""

    def __init__(self, fleet: Fleet, glossaries: Glossaries, metrics: Metrics, *, is_explicit: bool) -> None:
        self._fleet = fleet
        self._glossaries = glossaries
        self._metrics = metrics
        self._is_explicit = is_explicit
        self._reloading = asyncio.Lock()

    async def reload(self, *, is_requested: bool = True) -> ReloadOutcome:
        """Reload models and glossaries, one reload at a time; with explicit model control, only glossaries.

        A success is a line of the log, unless nothing has changed and nobody has requested it.
        """
        async with self._reloading:
            if await asyncio.to_thread(self._glossaries.refresh):
                _LOG.info("glossaries have changed")
            if self._is_explicit:
                return ReloadOutcome.UNCHANGED
            try:
                outcome = await self._fleet.reload()
            except Exception:
                _LOG.exception("reloading failed; the served models are unchanged")
                outcome = ReloadOutcome.FAILED
            self._metrics.reloaded(outcome)
            if outcome is ReloadOutcome.CHANGED or (is_requested and outcome is ReloadOutcome.UNCHANGED):
                served = ", ".join(f"{each.name}/{each.version}".rstrip("/") for each in self._fleet.models)
                _RELOADS.info("models were reloaded (%s); served: %s", outcome.value, served)
            return outcome

    async def follow(self, requested: asyncio.Event, every_seconds: float) -> None:
        """Reload whenever `requested` is set, and every so many seconds unless they are 0."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(requested.wait(), every_seconds or None)
            if self._is_explicit and requested.is_set():
                _LOG.warning("SIGHUP changes no models: with --model-control explicit, they are loaded by call only")
            is_requested = requested.is_set()
            requested.clear()
            await self.reload(is_requested=is_requested)


async def follow_files(tls: ServerTls | None, gate: "Gate | None", metrics: Metrics, translator: Translator) -> None:
    """Reload certificates and keys when they change. New connections and calls use them; others continue."""
    while True:
        if tls:
            metrics.tls_valid_until(tls.not_after_seconds)
        await asyncio.sleep(0.5)
        try:
            if tls is not None and await asyncio.to_thread(tls.refresh):
                _LOG.info("new connections get the new TLS certificate")
            if gate is not None and await asyncio.to_thread(gate.refresh):
                _LOG.info("the API keys have changed")
            if gate is not None:
                with contextlib.suppress(Unavailable):  # until models are loaded
                    models, glossaries = translator.models(), translator.glossaries()
                    gate.check_names({each.name for each in models}, {each.name for each in glossaries})
        except Exception:
            _LOG.exception("checking the files of TLS and API keys failed; their previous contents stay in use")
