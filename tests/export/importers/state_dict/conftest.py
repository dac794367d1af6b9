"""Tokenizers of two languages."""

from pathlib import Path

import pytest

from tests.export.importers.state_dict.checkpoints import train_json_tokenizers, train_tokenizers


@pytest.fixture(scope="session")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the SentencePiece models of source and target."""
    return train_tokenizers(tmp_path_factory.mktemp("tokenizers"))


@pytest.fixture(scope="session")
def json_tokenizers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the same tokenizers as JSON of the tokenizers library."""
    return train_json_tokenizers(tmp_path_factory.mktemp("json_tokenizers"))
