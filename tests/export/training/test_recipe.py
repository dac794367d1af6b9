from pathlib import Path

import pytest

from export.architecture import ModelConfig
from export.training.recipe import load_recipe

RECIPES = sorted(Path("export/training/recipes").glob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_shipped_recipes_load_and_describe_a_model(path: Path) -> None:
    recipe = load_recipe(path)
    size = recipe.tokenizer.vocabulary_size
    config = ModelConfig.from_document({"source_vocabulary_size": size, "target_vocabulary_size": size, **recipe.model})
    assert recipe.data.max_tokens <= config.max_source_positions


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("clip_norm = 1.0", "", "clip_norm"),
        ("clip_norm = 1.0", "clip_norm = 1.0\nclip = 2", "clip"),
        ("batch_tokens = 5000", 'batch_tokens = "many"', "batch_tokens"),
        ("[schedule]", "[schedule", "not a valid TOML"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, message: str, tmp_path: Path) -> None:
    text = RECIPES[0].read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "recipe.toml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        load_recipe(path)
