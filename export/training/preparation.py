"""Prepares the loop's input from a corpus: tokenizer, encoded training pairs, validation pairs; kept for resuming."""

import hashlib
import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import sentencepiece
from tqdm import tqdm

from export.importers.native.folder import TOKENIZER_NAME
from export.training.corpus import (
    EncodedCorpus,
    add_noise,
    encode_corpus,
    hold_out,
    known_symbols,
    read_pairs,
    weigh,
    without_sources,
)
from export.training.recipe import Recipe
from export.training.tokenizer import train_tokenizer

FINGERPRINT_NAME = "prepared.sha256"
TRAINING_NAME = "training.npz"
VALIDATION_NAME = "validation.npz"


@dataclass(frozen=True, slots=True)
class PreparedData:
    """All input of a training run."""

    tokenizer: sentencepiece.SentencePieceProcessor
    training: EncodedCorpus
    validation: EncodedCorpus


def prepare(recipe: Recipe, data: list[Path], output: Path, init_tokenizer: Path | None) -> PreparedData:
    """Prepare the data in `output`, or read what an earlier run prepared; `init_tokenizer` replaces a new one."""
    output.mkdir(parents=True, exist_ok=True)
    fingerprint = _fingerprint(recipe, data, init_tokenizer)
    marker = output / FINGERPRINT_NAME
    if not marker.exists() or marker.read_text() != fingerprint:
        _prepare(recipe, data, output, init_tokenizer)
        marker.write_text(fingerprint)
    return PreparedData(
        tokenizer=sentencepiece.SentencePieceProcessor(model_file=str(output / TOKENIZER_NAME)),
        training=EncodedCorpus.load(output / TRAINING_NAME),
        validation=EncodedCorpus.load(output / VALIDATION_NAME),
    )


def _prepare(recipe: Recipe, data: list[Path], output: Path, init_tokenizer: Path | None) -> None:
    seed = recipe.schedule.seed
    stages = tqdm(total=4, desc="prepare", unit="stage")
    # Validation lines come from the first file, so that they stay the same if more files are added.
    first, validation = hold_out(read_pairs(data[0]), recipe.data.validation_lines, seed)
    others = without_sources([pair for path in data[1:] for pair in read_pairs(path)], validation)
    training = list(dict.fromkeys([*first, *others]))
    stages.update()
    tokenizer_path = output / TOKENIZER_NAME
    if init_tokenizer is not None:
        shutil.copyfile(init_tokenizer, tokenizer_path)
    else:
        texts = (text for pair in training for text in (pair.source, pair.target))
        train_tokenizer(texts, recipe.tokenizer, tokenizer_path, seed)
    stages.update()
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(tokenizer_path))
    symbols = known_symbols(tokenizer)
    weighted = add_noise(weigh(training, recipe.data, symbols, seed), recipe.noise, symbols, seed)
    encode_corpus(weighted, tokenizer, recipe.data.max_tokens).save(output / TRAINING_NAME)
    stages.update()
    weighted = weigh(validation, recipe.data, symbols, seed + 1)
    encode_corpus(weighted, tokenizer, recipe.data.max_tokens).save(output / VALIDATION_NAME)
    stages.update()
    stages.close()


def _fingerprint(recipe: Recipe, data: list[Path], init_tokenizer: Path | None) -> str:
    digest = hashlib.sha256()
    sections = [asdict(recipe.tokenizer), asdict(recipe.data), asdict(recipe.noise), recipe.schedule.seed]
    digest.update(json.dumps(sections).encode())
    for path in [*data, *([init_tokenizer] if init_tokenizer else [])]:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
