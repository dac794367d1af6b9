"""Trains the SentencePiece model shared by source and target."""

from collections.abc import Iterable
from pathlib import Path

import sentencepiece

from export.training.placeholders import reserved_symbols
from export.training.recipe import TokenizerRecipe

BOS_ID, PAD_ID, EOS_ID, UNK_ID = 0, 1, 2, 3  # fairseq's order, which M2M100 and its tools expect


def train_tokenizer(sentences: Iterable[str], recipe: TokenizerRecipe, path: Path, seed: int) -> None:
    """Write a unigram model to `path`; its ids are the Transformer's ids.

    Digits are split so that numbers are copied digit by digit; the reserved symbols are separate pieces.
    """
    sentencepiece.set_random_generator_seed(seed)
    with path.open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=file,
            model_type="unigram",
            vocab_size=recipe.vocabulary_size,
            character_coverage=recipe.character_coverage,
            user_defined_symbols=list(reserved_symbols(recipe.num_reserved_symbols)),
            split_digits=True,
            normalization_rule_name="nmt_nfkc",
            input_sentence_size=400_000,
            shuffle_input_sentence=True,
            bos_id=BOS_ID,
            pad_id=PAD_ID,
            eos_id=EOS_ID,
            unk_id=UNK_ID,
            num_threads=2,
            minloglevel=2,
        )
