"""Loads models as the configuration says, and tells the translator and the metrics of loaded and retired ones."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from service.config.server_config import ServerConfig
from service.engine.config import EngineConfig
from service.engine.runtime.session import SessionConfig
from service.models.catalogue import Catalogue
from service.models.loaded_model import LoadedModel
from service.models.loader import load_model
from service.models.repository import FoundBundle
from service.models.statistics import InferenceStatistics
from service.models.trial import try_out
from service.observe.metrics import Metrics, ModelInfo
from service.translation.pending import EngineBridge
from service.translation.translator import Translator

_LOG = logging.getLogger(__name__)


class ModelLoader:
    """Loads one model, with an engine whose updates go to the translator on the event loop."""

    def __init__(
        self,
        config: ServerConfig,
        loop: asyncio.AbstractEventLoop,
        metrics: Metrics,
        translator: Translator,
        failed: Callable[[BaseException], None],
        *,
        checks_integrity: bool,
    ) -> None:
        """Take `failed`, which is called on the event loop when an engine fails; `checks_integrity` as
        `Server` does."""
        self._loop = loop
        self._metrics = metrics
        self._translator = translator
        self._failed = failed
        self._engine_config = EngineConfig(
            max_slots=config.max_slots or None,
            max_waiting=config.max_waiting,
            max_queue_seconds=config.max_queue_seconds,
            checks_integrity=checks_integrity,
        )
        self._checks_numbers = config.check_numbers
        self._session_config = SessionConfig(device=config.device, intra_op_threads=config.num_threads)

    def load(self, bundle: FoundBundle) -> LoadedModel:
        """Load one model; called on a thread of the fleet."""
        _LOG.info("loading %s", bundle.directory)
        statistics = InferenceStatistics()
        model_metrics = self._metrics.model(bundle.name)
        bridge = EngineBridge(
            self._loop, model_metrics, bundle.version, statistics, self._translator.deliver, self._failed
        )
        return load_model(
            bundle,
            self._engine_config,
            self._session_config,
            bridge,
            statistics,
            checks_numbers=self._checks_numbers,
        )

    def try_out(self, bundle: FoundBundle) -> None:
        """See `service.models.trial`; called on a thread of the fleet."""
        _LOG.info("trying %s", bundle.directory)
        try_out(bundle, self._engine_config, self._session_config)


class FleetBridge:
    """A `FleetListener`."""

    def __init__(self, metrics: Metrics, translator: Translator, pivot_languages: Sequence[str]) -> None:
        """Take `pivot_languages` as `Catalogue` does."""
        self._metrics = metrics
        self._translator = translator
        self._pivot_languages = pivot_languages

    def on_loaded(self, model: LoadedModel, seconds: float) -> None:
        self._metrics.model(model.name).loaded(model.engine, model.version, seconds)

    def on_served(self, models: Sequence[LoadedModel]) -> None:
        self._translator.serve(Catalogue(models, self._pivot_languages))
        self._metrics.serves(
            ModelInfo(
                model.name, model.version, model.manifest.precision, model.manifest.checkpoint_sha256, model.kernels
            )
            for model in models
        )

    def on_retired(self, model: LoadedModel) -> None:
        self._metrics.retired(model.name, model.version, model.engine)

    def on_restarted(self, model: LoadedModel) -> None:
        self._metrics.model(model.name).restarted()

    def on_refused(self, name: str) -> None:
        self._metrics.load_failed(name)
