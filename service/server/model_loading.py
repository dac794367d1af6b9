"""The models of a server as its configuration says: loaded, served by the translator, and counted in the metrics."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from service.config.server_config import ServerConfig
from service.domain.translation import CallLimits
from service.engine.config import EngineConfig
from service.engine.runtime.session import SessionConfig
from service.faces.http.monitoring import triton_metrics
from service.models.catalogue import Catalogue
from service.models.control import ModelControl
from service.models.fleet import Fleet
from service.models.loaded_model import InferenceStatistics, LoadedModel
from service.models.loader import load_model
from service.models.repository import FoundBundle
from service.models.trial import try_out
from service.observe.metrics import Metrics, ModelInfo
from service.server.optional_parts import placeholders_of
from service.server.reloading import Reloader
from service.text.glossary import Glossaries
from service.translation.cache import TranslationCache
from service.translation.pending import EngineBridge
from service.translation.translator import Translator

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Models:
    """The models, and the parts that use and change them."""

    translator: Translator
    fleet: Fleet
    control: ModelControl
    reloader: Reloader

    async def stop(self) -> None:
        self.control.close()
        self.translator.close()
        await self.fleet.stop()


def models_of(
    config: ServerConfig, metrics: Metrics, failed: Callable[[BaseException], None], *, checks_integrity: bool
) -> Models:
    """Build what loads and serves models; must be called on the server's event loop.

    `failed` is called there when an engine fails; `checks_integrity` is as for `EngineConfig`.
    """
    cache = TranslationCache(config.cache_mib * 2**20)
    metrics.memory_for_cache(cache.max_bytes, lambda: cache.num_bytes)
    glossaries = Glossaries(config.glossaries)
    limits = CallLimits(config.max_characters, config.max_waiting, config.max_answer_characters)
    translator = Translator(metrics, cache, glossaries, limits, placeholders_of(config))
    loader = ModelLoader(
        config, asyncio.get_running_loop(), metrics, translator, failed, checks_integrity=checks_integrity
    )
    fleet = Fleet(
        config.models,
        config.max_versions,
        loader.load,
        loader.try_out,
        FleetBridge(metrics, translator, config.pivot_languages),
        drain_seconds=config.grace_seconds,
    )
    if config.triton_metrics:
        metrics.shows(lambda: triton_metrics(fleet.models))
    control = ModelControl(fleet, is_explicit=config.is_explicit)
    reloader = Reloader(fleet, glossaries, metrics, is_explicit=config.is_explicit)
    return Models(translator, fleet, control, reloader)


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
        """Called on a thread of the fleet."""
        _LOG.info("trying %s", bundle.directory)
        try_out(bundle, self._engine_config, self._session_config)


class FleetBridge:
    """A `FleetListener`."""

    def __init__(self, metrics: Metrics, translator: Translator, pivot_languages: Sequence[str]) -> None:
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
