"""Loads one bundle: device, precision -> checksums -> tokenizer, graphs -> self-test -> warm-up -> running engine.

The checksums of weights, which nothing parses, are computed while they are read: nothing runs before they are right.
"""

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from service.bundle.checksums import check_parsed, check_weights
from service.bundle.errors import CONVERT_AGAIN, BundleError, one_line
from service.engine.config import EngineConfig
from service.engine.engine import Engine
from service.engine.reports import EngineListener
from service.engine.runtime.runners import Runners, open_runners
from service.engine.runtime.session import DeviceUnavailable, SessionConfig, check_device, check_precision
from service.models.language_pairs import LanguagePairs
from service.models.loaded_model import InferenceStatistics, LoadedModel
from service.models.repository import FoundBundle
from service.models.self_test import check_aligner, self_test
from service.models.warm_up import warm_up
from service.process.memory import memory_shortage
from service.text.tokenizers import Tokenizer, load_tokenizer


@dataclass(frozen=True, slots=True)
class _Prepared:
    """An opened and tested bundle: all that an engine needs."""

    tokenizer: Tokenizer
    opened: Runners
    pairs: LanguagePairs
    step_seconds: dict[int, float]  # by rows


def load_model(
    bundle: FoundBundle,
    engine_config: EngineConfig,
    session_config: SessionConfig,
    listener: EngineListener,
    statistics: InferenceStatistics,
    *,
    checks_numbers: bool = True,
) -> LoadedModel:
    """Load a bundle and verify that it works here; on return its engine runs and reports to `listener`.

    The listener updates the model's `statistics` with turns. With `checks_numbers`, calls check numbers by default.
    """
    with _bundle_errors(bundle, session_config.device):
        made = _prepared(bundle, engine_config, session_config)
        runners, pairs, kernels = made.opened.runners, made.pairs, made.opened.kernels
        engine = Engine(runners, engine_config, listener, step_seconds=made.step_seconds)
        engine.start()
        return LoadedModel(
            bundle,
            made.tokenizer,
            engine,
            pairs,
            statistics,
            made.opened.aligner,
            kernels=kernels,
            checks_numbers=checks_numbers,
        )


def try_model(bundle: FoundBundle, engine_config: EngineConfig, session_config: SessionConfig) -> None:
    """Do all that `load_model` does before it starts an engine, and raise the same."""
    with _bundle_errors(bundle, session_config.device):
        _prepared(bundle, engine_config, session_config)


def _prepared(bundle: FoundBundle, engine_config: EngineConfig, session_config: SessionConfig) -> _Prepared:
    directory, manifest = bundle.directory, bundle.manifest
    check_device(session_config.device)
    check_precision(manifest.precision, session_config.device, str(directory))
    check_parsed(directory, manifest)
    pairs = LanguagePairs(manifest)
    with ThreadPoolExecutor(2) as pool:
        checking = pool.submit(check_weights, directory, manifest)
        loading = pool.submit(load_tokenizer, manifest.tokenizer, directory)
        try:
            opened = open_runners(directory, manifest, engine_config, session_config)
        finally:
            checking.result()  # damage is the reason for whatever else fails
        tokenizer = loading.result()
    # Before the trials: the end of a trial terminates the encoder until the engine starts.
    if opened.aligner is not None:
        check_aligner(bundle, pairs, opened.aligner)
    self_test(bundle, pairs, tokenizer, opened.runners, engine_config)
    step_seconds = warm_up(bundle, opened.runners, engine_config)
    return _Prepared(tokenizer, opened, pairs, step_seconds)


@contextlib.contextmanager
def _bundle_errors(bundle: FoundBundle, device: str) -> Iterator[None]:
    """Convert what tokenizers, ONNX Runtime and NumPy raise on bad files, without a common base, to `BundleError`."""
    try:
        yield
    except Exception as error:
        of_device = isinstance(error, DeviceUnavailable) and device != "cpu"  # its message already names the memory
        shortage = memory_shortage(error)
        if shortage is not None and not of_device:
            raise BundleError(_no_memory(bundle, device, one_line(shortage))) from error
        if isinstance(error, BundleError | DeviceUnavailable):
            raise
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise BundleError(f"{bundle.directory} can't be loaded ({reason}); {CONVERT_AGAIN}.") from error


def _no_memory(bundle: FoundBundle, device: str, reason: str) -> str:
    return (
        f"{bundle.directory} can't be loaded on device {device!r}: memory or threads ran out ({reason}). "
        f"Its files take {bundle.num_bytes / 2**20:.0f} MiB, which are copied, and rows and threads "
        "need more; give the process more memory, lower --max-slots, or serve fewer models or versions."
    )
