"""A model that is ready to translate: its bundle's manifest, tokenizer and engine, its users, and its statistics."""

import asyncio
import contextlib
import hashlib
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import LanguagePair
from service.domain.call import Phase
from service.domain.options import DEFAULTS, DecodingOptions, RequestedOptions
from service.engine.engine import Engine
from service.engine.reports import TurnStats
from service.engine.runtime.aligner import Aligner
from service.models.language_pairs import LanguagePairs
from service.models.repository import FoundBundle
from service.models.self_test import self_test
from service.text.tokenizers import Tokenizer, of_pair, of_prose
from service.text.unknown import UnknownCharacters

# What callers send that is kept resolved: options, names and codes, of which they may send any number.
MAX_RESOLVED = 1024


@dataclass(slots=True)
class Duration:
    """A count of something, and its total duration."""

    count: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.seconds += seconds


class InferenceStatistics:
    """The sums of one version of a model, as KServe's ModelStatistics has them.

    All except `turn` and `step_seconds` belongs to the event loop's thread. Phases are counted once per call: `queue`
    until its first text was admitted, `decode` from then until its last was decoded; `detokenize` more often in a
    stream.
    """

    def __init__(self) -> None:
        self.succeeded = Duration()
        self.failed = Duration()  # or cancelled by the caller
        self.tokenize, self.queue, self.decode, self.detokenize = (Duration() for _ in range(4))
        self.phases = {Phase.TOKENIZE: self.tokenize, Phase.DETOKENIZE: self.detokenize}
        self.num_texts = 0  # of successful calls
        self.last_used_seconds = 0.0  # since 1970; 0: never
        self._lock = threading.Lock()
        self._steps: dict[int, Duration] = {}

    def called(self, num_texts: int, seconds: float, *, succeeded: bool) -> None:
        if not succeeded:
            self.failed.add(seconds)
            return
        self.succeeded.add(seconds)
        self.num_texts += num_texts
        self.last_used_seconds = time.time()

    def turn(self, stats: TurnStats) -> None:
        if stats.batch_size:
            with self._lock:
                self._steps.setdefault(stats.batch_size, Duration()).add(stats.run_seconds)

    def step_seconds(self) -> dict[int, Duration]:
        """Return the durations of decoder runs by their number of rows, in ascending order. Thread-safe."""
        with self._lock:
            return {rows: Duration(took.count, took.seconds) for rows, took in sorted(self._steps.items())}


class Leases:
    """The calls that hold one model. Belongs to the event loop's thread."""

    def __init__(self) -> None:
        self.num_held = 0
        self._given_back: asyncio.Event | None = None  # while somebody waits for it

    def give_back(self) -> None:
        self.num_held -= 1
        if not self.num_held and self._given_back is not None:
            self._given_back.set()

    async def none_held(self, timeout_seconds: float) -> bool:
        """Wait until no call holds the model; return false if some still do after the timeout."""
        if self._given_back is None:
            self._given_back = asyncio.Event()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                while self.num_held:
                    self._given_back.clear()
                    await self._given_back.wait()
        return not self.num_held


@dataclass(frozen=True, slots=True, eq=False)
class LoadedModel:
    """One version of a model, in memory. Every user holds a lease.

    The `aligner` computes where the tokens of a translation came from; `None` if the bundle has no alignment graph.
    `fingerprint` is a digest of everything in the bundle that a translation depends on; `kernels` compute it
    (`engine.runtime.runners`). `default_options` are for requests that set none; their `max_output_tokens` is also the
    model's limit.
    """

    bundle: FoundBundle
    tokenizer: Tokenizer
    engine: Engine
    pairs: LanguagePairs
    statistics: InferenceStatistics = field(default_factory=InferenceStatistics)
    aligner: Aligner | None = None
    leases: Leases = field(default_factory=Leases)
    kernels: str = "plain"
    checks_numbers: bool = True  # of calls that do not say
    name: str = field(init=False)  # as in a request's `model` and in metrics' labels
    version: str = field(init=False)  # as in a request's `model_version`; empty for a bundle outside a repository
    manifest: Manifest = field(init=False)
    fingerprint: str = field(init=False)
    default_options: DecodingOptions = field(init=False)
    _tokenizers: dict[Tokenizer, tuple[Tokenizer, UnknownCharacters]] = field(init=False, default_factory=dict)
    _resolved: dict[tuple[tuple[str, Any], ...], DecodingOptions] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in (
            ("name", self.bundle.name),
            ("version", self.bundle.version),
            ("manifest", self.bundle.manifest),
            ("default_options", _default_options(self.bundle.manifest, checks_numbers=self.checks_numbers)),
        ):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "fingerprint", _fingerprint(self.manifest))

    def tokenizer_of(self, pair: LanguagePair) -> tuple[Tokenizer, UnknownCharacters]:
        tokenizer = of_pair(self.tokenizer, pair)
        if tokenizer not in self._tokenizers:  # golden pairs have their spaces as the tokenizer itself writes them
            used = of_prose(tokenizer) if self.manifest.is_prose else tokenizer
            self._tokenizers[tokenizer] = used, UnknownCharacters(used)
        return self._tokenizers[tokenizer]

    def restart(self) -> None:
        """Restart its engine after a failure, if its golden sentences are translated as expected."""
        self.engine.restart(lambda runners, config: self_test(self.bundle, self.pairs, self.tokenizer, runners, config))

    def options(self, requested: RequestedOptions) -> DecodingOptions:
        key = tuple(requested.chosen.items())
        options = self._resolved.get(key)
        if options is None:
            options = requested.resolve(self.default_options, can_change_scores=self.engine.can_change_scores)
            if len(self._resolved) >= MAX_RESOLVED:
                self._resolved.clear()
            self._resolved[key] = options
        return options


def _default_options(manifest: Manifest, *, checks_numbers: bool) -> DecodingOptions:
    generation = manifest.generation
    guards = {} if manifest.is_prose else {"max_length_ratio": 0.0, "max_repeats": 0}  # formulas do repeat themselves
    return DecodingOptions(
        beam_size=generation.beam_size,
        length_penalty=generation.length_penalty,
        num_hypotheses=generation.num_hypotheses,
        max_output_tokens=manifest.limits.max_output_tokens,
        stops_early=generation.stops_early,
        narrows=generation.narrows,
        forces_end=generation.forces_end,
        **{**DEFAULTS, **guards, **generation.options, "check_numbers": checks_numbers},
    )


def _fingerprint(manifest: Manifest) -> str:
    files = "".join(f"{name} {checksum}\n" for name, checksum in sorted(manifest.checksums.items()))
    return hashlib.sha256(f"{files}{manifest.tokenizer}".encode()).hexdigest()
