"""A real bundle with a tiny model of random weights, which the real engine serves within moments on any machine."""

import io
import shutil
from dataclasses import replace
from pathlib import Path

import sentencepiece

from service.bundle.checksums import file_sha256
from service.bundle.manifest import Manifest
from service.bundle.manifest_parts import (
    GenerationDefaults,
    GoldenPair,
    Graphs,
    Language,
    LanguagePair,
    Limits,
    ModelShape,
    TokenizerSpec,
)
from service.domain.options import DecodingOptions
from service.engine.config import EngineConfig
from service.engine.generate import OfflineEngine, sequences_of
from service.engine.runtime.session import SessionConfig
from service.text.tokenizers import single_spaced
from tests.patience import patient
from tests.unit.engine.runtime.tiny_graphs import TinyModel, save_alignment, save_decoder_step, save_encoder

MAX_SOURCE_TOKENS = 64
MAX_OUTPUT_TOKENS = 96
GOLDEN_TEXTS = ("Where is the train station?", "Save the file.", "Hello")

_SENTENCES = [
    "Where is the train station?",
    "Wo ist der Bahnhof?",
    "Save the file before you close the window.",
    "Speichern Sie die Datei, bevor Sie das Fenster schließen.",
    "Hello, can you help me find my keys?",
    "Hallo, kannst du mir helfen, meine Schlüssel zu finden?",
]


def write_tiny_bundle(
    directory: Path, name: str = "tiny", source: str = "en", target: str = "de", *, seed: int = 0, among: str = ""
) -> Path:
    """Write a bundle into `directory`, which is created; the same arguments give the same model.

    Each seed gives different weights. `among` lists languages, such as "fr it es": the model translates from each of
    them into each other one, and nothing else; its golden pairs use the first two.
    """
    directory.mkdir(parents=True)
    languages = tuple(Language(code, (3 + i,), (3 + i,)) for i, code in enumerate(among.split()))
    tokenizer = _train_tokenizer()
    (directory / "source.model").write_bytes(tokenizer)
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer)
    model = TinyModel(vocabulary_size=processor.get_piece_size(), seed=seed)
    save_encoder(model, directory / "encoder.onnx")
    save_decoder_step(model, directory / "decoder_step.onnx")
    save_alignment(model, directory / "alignment.onnx")
    manifest = Manifest(
        name=name,
        model=ModelShape(model.num_layers, model.num_heads, model.head_size, model.vocabulary_size),
        tokenizer=TokenizerSpec(
            kind="sentencepiece", file="source.model", pad_id=0, eos_id=2, unk_id=1, decoder_start_id=0
        ),
        languages=() if among else (LanguagePair(source, target),),
        limits=Limits(MAX_SOURCE_TOKENS, MAX_OUTPUT_TOKENS),
        golden=(),
        checksums={path.name: file_sha256(path) for path in sorted(directory.iterdir())},
        checkpoint_sha256="0" * 64,
        generation=GenerationDefaults(),
        graphs=Graphs(alignment="alignment.onnx"),
        any_to_any=languages,
    )
    pair = manifest.first_pair
    sources = [manifest.source_ids(processor.encode(text), pair) for text in GOLDEN_TEXTS]
    outputs = decode(directory, manifest, sources, pair.target_prefix_ids)
    golden = tuple(
        GoldenPair(
            pair.source_language_code, pair.target_language_code, text, ids, output, processor.decode(list(output))
        )
        for text, ids, output in zip(GOLDEN_TEXTS, sources, outputs, strict=True)
    )
    replace(manifest, golden=golden).save(directory)
    return directory


def put_bundle(models: Path, bundle: Path, name: str = "tiny", version: str = "") -> Path:
    """Install a copy of a bundle in a repository as export does: atomically, replacing any existing one."""
    target = models / name / (version or bundle.name)
    staging, replaced = models / f"{name}.staging", models / f"{name}.replaced"
    shutil.copytree(bundle, staging, symlinks=True)
    target.parent.mkdir(exist_ok=True)
    if target.exists():
        target.rename(replaced)
    staging.rename(target)
    shutil.rmtree(replaced, ignore_errors=True)
    return target


def golden_translations(bundle: Path) -> list[str]:
    """Return the model's translations of `GOLDEN_TEXTS`, as servers write prose."""
    return [single_spaced(pair.translation) for pair in Manifest.load(bundle).golden]


def decode(
    directory: Path, manifest: Manifest, sources: list[tuple[int, ...]], prefix_ids: tuple[int, ...] = ()
) -> list[tuple[int, ...]]:
    """Return the greedy outputs of a bundle's model, each source decoded on its own."""
    # With the guards against degenerate output that a server uses by default.
    options = DecodingOptions(1, 1.0, 1, manifest.limits.max_output_tokens, max_length_ratio=3.0, max_repeats=10)
    with OfflineEngine.open(
        directory, manifest, EngineConfig(max_slots=1), SessionConfig(intra_op_threads=1)
    ) as engine:
        outputs = [engine.generate(sequences_of([(source, prefix_ids)], options), patient(30)) for source in sources]
    return [best.token_ids for ((best, *_),) in outputs]


def _train_tokenizer() -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(_SENTENCES),
        model_writer=model,
        vocab_size=100,
        hard_vocab_limit=False,
        pad_id=0,
        unk_id=1,
        eos_id=2,
        bos_id=-1,
        minloglevel=2,
    )
    return model.getvalue()
