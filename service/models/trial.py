"""A trial: sequences decoded on an engine that lives only for them, before anybody is served."""

import dataclasses
from collections.abc import Sequence as Sequence_

from service.bundle.manifest import BundleError, one_line
from service.domain.errors import ServiceError
from service.engine.config import EngineConfig
from service.engine.generate import Hypotheses, OfflineEngine
from service.engine.runner import Runner
from service.engine.sequence import Sequence

_TIMEOUT_SECONDS = 300.0


def run_trial(
    sequences: Sequence_[Sequence], runners: Sequence_[Runner], engine_config: EngineConfig, where: str
) -> list[Hypotheses]:
    """Decode sequences to their ends and return each one's hypotheses, in order; all may wait at once, whatever
    `engine_config` allows.

    Raises:
        BundleError: one of them failed, or there was no end; names `where`.
    """
    config = dataclasses.replace(
        engine_config, max_waiting=max(engine_config.max_waiting, len(sequences)), max_queue_seconds=_TIMEOUT_SECONDS
    )
    try:
        with OfflineEngine(runners, config) as engine:
            return engine.generate(sequences, _TIMEOUT_SECONDS)
    except TimeoutError as error:
        raise BundleError(f"{where} fails its self-test: no answer within {_TIMEOUT_SECONDS:g} s") from error
    except ServiceError as error:
        raise BundleError(f"{where} fails its self-test: {one_line(error)}") from error
