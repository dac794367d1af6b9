"""Passes changes of models to the translator and the metrics."""

from collections.abc import Sequence

from service.models.catalogue import Catalogue
from service.models.loaded_model import LoadedModel
from service.observe.metrics import Metrics, ModelInfo
from service.translation.translator import Translator


class FleetBridge:
    """A `FleetListener`."""

    def __init__(self, metrics: Metrics, translator: Translator) -> None:
        self._metrics = metrics
        self._translator = translator

    def on_loaded(self, model: LoadedModel, seconds: float) -> None:
        """See `FleetListener.on_loaded`."""
        self._metrics.model(model.name).loaded(model.engine, seconds)

    def on_served(self, models: Sequence[LoadedModel]) -> None:
        """See `FleetListener.on_served`."""
        self._translator.serve(Catalogue(models))
        self._metrics.serves(
            ModelInfo(model.name, model.version, model.manifest.precision, model.manifest.checkpoint_sha256)
            for model in models
        )

    def on_retired(self, model: LoadedModel) -> None:
        """See `FleetListener.on_retired`."""
        self._metrics.retired(model.name, model.engine)

    def on_restarted(self, model: LoadedModel) -> None:
        """See `FleetListener.on_restarted`."""
        self._metrics.model(model.name).restarted()

    def on_refused(self, name: str) -> None:
        """See `FleetListener.on_refused`."""
        self._metrics.load_failed(name)
