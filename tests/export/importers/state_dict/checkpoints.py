"""Small models of the documents with random weights, in the files that a user would have."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from export.importers.options import ImportOptions
from export.verification_texts import GOLDEN_TEXTS
from tests.export.importers.state_dict.readings import Choices, Sizes, Transformer002

SOURCE_SIZE, TARGET_SIZE = 130, 100
SIZES = Sizes(SOURCE_SIZE, TARGET_SIZE)
SOURCE_IDS = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}
TARGET_IDS = {"unk_id": 0, "bos_id": 1, "eos_id": 2, "pad_id": 3}
NEVER = [0, 1, 3]  # of the target: unknown, start and padding
HINDI = (
    "रेलवे स्टेशन कहाँ है?",
    "मुझे एक कप कॉफ़ी चाहिए।",
    "मेरा भाई समुद्र के पास एक छोटे घर में रहता है।",
    "खिड़की बंद करने से पहले फ़ाइल सहेजें।",
    "कल से बारिश हो रही है।",
    "क्या आप मेरी चाबियाँ खोजने में मदद कर सकते हैं?",
)


@dataclass
class Notebook:
    """A model of a document, its owner's description for `--config`, and its files once they are written."""

    model: Transformer002
    said: dict[str, Any]
    options: ImportOptions = field(default_factory=ImportOptions)
    path: Path = Path()

    def write(self, directory: Path, tokenizers: tuple[Path, Path], save: "Save | None" = None) -> "Notebook":
        """Save the state dict, by `torch.save` by default, and the configuration."""
        directory.mkdir(exist_ok=True)
        path = directory / "model.pt"
        (save or torch.save)(self.model.state_dict(), path)
        config = directory / "config.json"
        config.write_text(json.dumps(self.said), encoding="utf-8")
        options = ImportOptions("en", "hi", config, *tokenizers)
        return replace(self, path=path, options=options)


Save = Callable[[dict[str, torch.Tensor], Path], Any]


def make(choices: Choices, sizes: Sizes = SIZES, seed: int = 0, **said: Any) -> Notebook:
    """Make a model of these choices; `said` is added to its configuration's sizes, ids and other required keys."""
    model = Transformer002(sizes, choices)
    randomize(model, seed)
    document = {
        **asdict(sizes),
        "norm": "pre" if choices.pre_norm else "post",
        "activation": "relu",
        "score_scale": "head",
        "pad_id": TARGET_IDS["pad_id"],
        "eos_id": TARGET_IDS["eos_id"],
        "unk_id": TARGET_IDS["unk_id"],
        "decoder_start_id": TARGET_IDS["bos_id"],
        "source_pad_id": SOURCE_IDS["pad_id"],
        "source_prefix_ids": [SOURCE_IDS["bos_id"]],
        "source_eos_id": SOURCE_IDS["eos_id"],
    }
    return Notebook(model, document | said)


@torch.no_grad()
def randomize(model: Transformer002, seed: int) -> None:
    """Set weights so that the next token depends on the source and all tokens before, and sentences do end."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if parameter.dim() == 1 and name.endswith(("weight", "aplha")):
            parameter.copy_(1.0 + 0.1 * noise)  # gains
        elif parameter.dim() == 1 or parameter.shape[-1] == 1:
            parameter.copy_(0.1 * noise)  # biases
        elif "embeddings" in name or "projection" in name:
            parameter.copy_(noise)
        else:
            parameter.copy_((1.0 if "attention" in name else 0.5) * noise * parameter.shape[-1] ** -0.5)
    model.projection_layer.linear_layer.weight[TARGET_IDS["eos_id"]] *= 2.5


def train_tokenizer(texts: Iterable[str], path: Path, size: int, ids: dict[str, Any]) -> Path:
    """Write a SentencePiece model of `size` pieces."""
    with path.open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=file,
            model_type="bpe",
            vocab_size=size,
            character_coverage=1.0,
            num_threads=1,
            minloglevel=2,
            **ids,
        )
    return path


def train_tokenizers(directory: Path) -> tuple[Path, Path]:
    """Write a source and a target tokenizer, of different sizes and with different special ids."""
    source = train_tokenizer(GOLDEN_TEXTS, directory / "english.model", SOURCE_SIZE, SOURCE_IDS)
    target = train_tokenizer(HINDI, directory / "hindi.model", TARGET_SIZE, TARGET_IDS)
    return source, target


def train_json_tokenizers(directory: Path) -> tuple[Path, Path]:
    """Write tokenizers with the same sizes and special ids as JSON of the tokenizers library."""
    source = train_json_tokenizer(GOLDEN_TEXTS, directory / "tokenizer_en.json", SOURCE_SIZE, SOURCE_IDS)
    target = train_json_tokenizer(HINDI, directory / "tokenizer_hi.json", TARGET_SIZE, TARGET_IDS)
    return source, target


def train_json_tokenizer(texts: Iterable[str], path: Path, size: int, ids: dict[str, int]) -> Path:
    """Write a tokenizer as tutorials do: words, an unknown token, and special tokens first."""
    tokenizer = Tokenizer(models.BPE(unk_token="[unk_id]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = [f"[{name}]" for name in sorted(ids, key=lambda name: ids[name])]
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.save(str(path))
    return path


def random_sources(lengths: list[int], seed: int = 1) -> list[list[int]]:
    """Return sources of ordinary tokens between the start and the end token."""
    generator = torch.Generator().manual_seed(seed)
    drawn = [torch.randint(4, SOURCE_SIZE, (length,), generator=generator).tolist() for length in lengths]
    return [[SOURCE_IDS["bos_id"], *ids, SOURCE_IDS["eos_id"]] for ids in drawn]
