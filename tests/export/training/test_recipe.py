import re
from pathlib import Path

import pytest

from export.architecture import ModelConfig
from export.training.recipe import DataRecipe, load_recipe

RECIPES = sorted(Path("export/training/recipes").glob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_shipped_recipes_load_and_describe_a_model(path: Path) -> None:
    recipe = load_recipe(path)
    size = recipe.tokenizer.vocabulary_size
    config = ModelConfig.from_document({"source_vocabulary_size": size, "target_vocabulary_size": size, **recipe.model})
    assert recipe.data.max_tokens <= config.max_source_positions


@pytest.mark.parametrize(
    ("part", "source", "weight"),
    [("a", "one two", 4.0), ("a", "one two three", 2.0), ("b", "one", 1.0), ("b", "one two three", 1.0)],
)
def test_short_sentences_may_weigh_more(part: str, source: str, weight: float) -> None:
    recipe = DataRecipe(
        weights={"a": 2.0},
        default_weight=1.0,
        short_words=2,
        short_weights={"a": 4.0},
        max_tokens=72,
        validation_lines=10,
        placeholder_share=0.0,
    )
    assert recipe.weight(part, source) == weight


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("clip_norm = 1.0", "", "clip_norm"),
        ("clip_norm = 1.0", "clip_norm = 1.0\nclip = 2", "clip"),
        ("batch_tokens = 8000", 'batch_tokens = "many"', "batch_tokens"),
        ("decay_steps = 400", "decay_steps = 0", "decay_steps is 0; expected at least 1"),
        ("[schedule]", "[schedule", "not a valid TOML"),
        ("lower_case = 0.10", "lower_case = -0.03", "lower_case is -0.03; expected a share from 0 to 1"),
        ("lower_case = 0.10", "lower_case = 0.97", "add up to 1.33"),
        ("lower_case = 0.10", "", "[noise] lacks ['lower_case']"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, message: str, tmp_path: Path) -> None:
    text = Path("export/training/recipes/en-de.toml").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "recipe.toml"
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(message)):
        load_recipe(path)
