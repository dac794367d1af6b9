"""The shipped bundle: with every option of decoding, no translation depends on what else is decoded."""

import pytest

from service.bundle.manifest import Manifest
from service.domain.options import DecodingOptions
from service.engine.config import EngineConfig
from service.engine.generate import Hypotheses, OfflineEngine
from service.engine.runner import Runner
from service.engine.runtime.fused_runner import FusedRunner
from service.engine.runtime.runners import open_runners
from service.engine.runtime.session import SessionConfig
from service.engine.sequence import Sequence
from service.text.tokenizers import load_tokenizer
from tests.patience import patient
from tests.servers import REPOSITORY

BUNDLE = REPOSITORY / "models" / "en-de" / "1"
SENTENCES = REPOSITORY / "checkpoints" / "en-de" / "sentences.tsv"
NUM_SENTENCES = 40
CONFIG = EngineConfig(max_slots=24, checks_integrity=True)
SESSION = SessionConfig(intra_op_threads=1)

Texts = list[tuple[int, ...]]

KINDS: dict[str, dict[str, object]] = {
    "greedy": {},
    "scores": {"return_scores": True},
    "sampling": {"temperature": 0.8, "top_k": 20, "top_p": 0.9},
    "beam 4": {"beam_size": 4, "num_hypotheses": 2},
    "penalties": {"repetition_penalty": 1.2, "no_repeat_ngram_size": 3, "min_output_tokens": 5, "return_scores": True},
    "beam with penalties": {"beam_size": 3, "repetition_penalty": 1.2, "no_repeat_ngram_size": 3},
    "guards": {"max_repeats": 1, "max_length_ratio": 1.2},
    "beam with guards": {"beam_size": 4, "max_repeats": 1, "max_length_ratio": 1.2, "stops_early": True},
    "forced end": {"beam_size": 2, "max_output_tokens": 9, "forces_end": True},
}


@pytest.fixture(scope="module")
def fused() -> list[FusedRunner]:
    opened = open_runners(BUNDLE, Manifest.load(BUNDLE), CONFIG, SESSION)
    return [runner for runner in opened.runners if isinstance(runner, FusedRunner)]


@pytest.fixture(scope="module")
def texts() -> Texts:
    """Return held-out sentences."""
    manifest = Manifest.load(BUNDLE)
    tokenizer = load_tokenizer(manifest.tokenizer, BUNDLE)
    lines = SENTENCES.read_text(encoding="utf-8").splitlines()[:NUM_SENTENCES]
    return [manifest.source_ids(tokenizer.encode(line.split("\t")[0]), manifest.first_pair) for line in lines]


def sequences(texts: Texts, kind: str) -> list[Sequence]:
    made = []
    for number, source_ids in enumerate(texts):
        given: dict[str, object] = {
            "beam_size": 1, "length_penalty": 1.0, "num_hypotheses": 1, "max_output_tokens": 60, **KINDS[kind],
        }  # fmt: skip
        if given.get("temperature"):
            given["seed"] = number
        options = DecodingOptions(**given)  # type: ignore[arg-type]
        made.append(Sequence(source_ids, options, 0.0))
    return made


def decode(runners: list[FusedRunner], asked: list[Sequence]) -> list[Hypotheses]:
    given: list[Runner] = list(runners)
    with OfflineEngine(given, CONFIG) as engine:
        return engine.generate(asked, patient(120.0))


def test_answers_do_not_depend_on_the_company(fused: list[FusedRunner], texts: Texts) -> None:
    together = decode(fused, [sequence for kind in KINDS for sequence in sequences(texts, kind)[:8]])
    apart = [hypotheses for kind in KINDS for hypotheses in decode(fused, sequences(texts, kind)[:8])]
    assert repr(together) == repr(apart)
