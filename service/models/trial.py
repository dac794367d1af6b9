"""A trial: sequences decoded on a temporary engine before a model is served."""

import dataclasses
from collections.abc import Sequence as Sequence_

from service.bundle.errors import BundleError, one_line
from service.domain.errors import ServiceError
from service.engine.config import EngineConfig
from service.engine.generate import Hypotheses, OfflineEngine
from service.engine.runner import Runner
from service.engine.sequence import Sequence

_TIMEOUT_SECONDS = 300.0


def run_trial(
    sequences: Sequence_[Sequence], runners: Sequence_[Runner], engine_config: EngineConfig, where: str
) -> list[Hypotheses]:
    """Decode sequences to their ends; returns each one's hypotheses, in order. `engine_config`'s limits on waiting
    don't apply.

    Raises:
        BundleError: one of them failed, or they did not end in time; names `where`.
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
