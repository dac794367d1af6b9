"""The whole training of a toy language, small enough for seconds: train, interrupt, resume, convert, score."""

import json
import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result
from safetensors.torch import load_file
from tqdm import tqdm

from export.importers.native.importer import import_native
from export.training import loop
from export.training.checkpoint import BestCheckpoint
from export.training.command import score, train
from tests.export.tiny_models import tiny_config, tiny_model

WORDS = {"the": "das", "house": "Haus", "sees": "sieht", "tom": "tom", "red": "rot", "a": "ein", "dog": "Hund"}
RECIPE = """
name = "toy"
source_language_code = "en"
target_language_code = "de"
licence = "CC-BY-4.0"
samples = ["the dog sees tom"]

[model]
d_model = 32
d_ff = 64
num_heads = 4
num_encoder_layers = 1
num_decoder_layers = 1
norm = "pre"
final_norm = true
share_embeddings = true
tie_projection = true
dropout = 0.0

[tokenizer]
vocabulary_size = 36
num_reserved_symbols = 4
character_coverage = 1.0

[data]
weights = {}
default_weight = 1.0
short_words = 3
short_weights = { toy = 2.0 }
max_tokens = 30
validation_lines = 20
placeholder_share = 0.08

[noise]
no_final_punctuation = 0.1
lower_case = 0.1
upper_case = 0.0
title_case = 0.0
leading_mark = 0.0
symbol_pair = 0.1
item = 0.1
joined = 0.1

[optimizer]
matrix_learning_rate = 2e-2
other_learning_rate = 1e-2
momentum = 0.9
final_rate_share = 0.1
warmup_steps = 5
weight_decay = 0.01
beta2 = 0.98
clip_norm = 1.0
label_smoothing = 0.0

[schedule]
batch_tokens = 200
total_steps = 80
decay_steps = 40
evaluate_every = 20
average_last = 2
seed = 7
"""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Write a recipe and word-by-word translations."""
    folder = tmp_path_factory.mktemp("toy")
    rng = random.Random(0)
    lines: set[str] = set()
    while len(lines) < 400:
        words = rng.choices(list(WORDS), k=rng.randint(3, 8))
        lines.add(f"{' '.join(words)}\t{' '.join(WORDS[word] for word in words)}\ttoy\n")
    (folder / "toy.tsv").write_text("".join(sorted(lines)), encoding="utf-8")
    (folder / "toy.toml").write_text(RECIPE, encoding="utf-8")
    return folder / "toy.toml", folder / "toy.tsv"


def run_train(recipe: Path, data: Path, output: Path, *more: str) -> Result:
    arguments = [str(recipe), "--data", str(data), "--output", str(output), "--threads", "1", *more]
    return CliRunner().invoke(train, arguments, catch_exceptions=False)


@pytest.fixture(scope="module")
def run(inputs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("run")
    result = run_train(*inputs, output)
    assert result.exit_code == 0, result.output
    return output


def log(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]


def test_a_run_learns_and_leaves_a_checkpoint_that_imports(run: Path) -> None:
    losses = [record["validation_loss"] for record in log(run) if "validation_loss" in record]
    assert len(losses) == 4
    assert losses[-1] < 0.7 * losses[0]
    imported = import_native(run / "checkpoint")
    assert (imported.name, imported.licence) == ("toy", "CC-BY-4.0")
    assert len(imported.tokenizer.reserved_symbols) == 4
    assert (run / "checkpoint" / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert all(value.dtype == torch.float16 for value in load_file(run / "checkpoint" / "model.safetensors").values())


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("step", "act", "says", "saved"),
    [(41, interrupt, "Aborted", 40), (30, lambda: signal.raise_signal(signal.SIGTERM), "Stopped after 30 steps", 30)],
)
def test_an_interrupted_run_ends_where_an_unbroken_one_does(
    inputs: tuple[Path, Path], run: Path, tmp_path: Path, step: int, act: Callable[[], None], says: str, saved: int
) -> None:
    class Bar(tqdm):  # type: ignore[type-arg]
        def update(self, n: float | None = 1) -> bool | None:
            super().update(n)
            if self.n == step:
                act()
            return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "tqdm", Bar)
        assert says in run_train(*inputs, tmp_path).output
    assert import_native(tmp_path / "checkpoint").name == "toy"  # its best so far
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert f"Continuing from step {saved}" in run_train(*inputs, tmp_path).output
    expected = load_file(run / "checkpoint" / "model.safetensors")
    for name, value in load_file(tmp_path / "checkpoint" / "model.safetensors").items():
        torch.testing.assert_close(value, expected[name], msg=name)


def test_a_run_is_finished_early_and_can_go_on_all_the_same(
    inputs: tuple[Path, Path], run: Path, tmp_path: Path
) -> None:
    recipe = tmp_path / "stable.toml"
    recipe.write_text(
        RECIPE.replace("total_steps = 80", "total_steps = 40").replace("decay_steps = 40", "decay_steps = 1")
    )
    output = tmp_path / "run"
    assert "there is no run to finish" in run_train(recipe, inputs[1], output, "--finish", "20").output
    run_train(recipe, inputs[1], output)
    state = (output / "state.pt").read_bytes()
    assert "60 steps" in run_train(recipe, inputs[1], output, "--finish", "20").output
    shares = [record["rate_share"] for record in log(output) if "rate_share" in record]
    assert shares == pytest.approx([0.55])  # at step 50: half way from 1.0 to 0.1
    assert (output / "state.pt").read_bytes() == state
    assert not (output / "finish.pt").exists()
    assert "Wrote" in run_train(inputs[0], inputs[1], output).output
    assert log(output)[-1]["step"] == 80


def test_the_best_weights_stay_on_disk(tmp_path: Path) -> None:
    written: list[int] = []
    best = BestCheckpoint(tmp_path, lambda model: written.append(model.config.d_model))
    for width, loss in ((8, 3.0), (16, 2.0), (32, 2.5)):
        best.offer(tiny_model(tiny_config(d_model=width)), loss)
    again = BestCheckpoint(tmp_path, lambda model: written.append(model.config.d_model))
    again.offer(tiny_model(tiny_config(d_model=64)), 2.2)
    assert written == [8, 16]


def test_init_goes_on_from_given_weights(inputs: tuple[Path, Path], run: Path, tmp_path: Path) -> None:
    result = run_train(*inputs, tmp_path, "--init", str(run / "checkpoint"))
    assert result.exit_code == 0, result.output
    first = next(record["validation_loss"] for record in log(tmp_path) if "validation_loss" in record)
    fresh = next(record["validation_loss"] for record in log(run) if "validation_loss" in record)
    assert first < fresh


def test_score_prints_a_table_and_signatures(inputs: tuple[Path, Path], run: Path, tmp_path: Path) -> None:
    output = tmp_path / "scores.json"
    lines = inputs[1].read_text(encoding="utf-8").splitlines(keepends=True)[:30]
    heldout = tmp_path / "heldout.tsv"
    heldout.write_text("".join(lines), encoding="utf-8")
    arguments = [str(run / "checkpoint"), str(heldout), "--output", str(output)]
    result = CliRunner().invoke(score, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "| toy | 30 |" in result.output
    assert "BLEU nrefs:1" in result.output
    [row] = json.loads(output.read_text(encoding="utf-8"))
    assert 0 <= row["bleu"] <= 100


def test_an_output_of_another_recipe_is_not_mixed_up(inputs: tuple[Path, Path], run: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "other.toml"
    recipe.write_text(RECIPE.replace("d_model = 32", "d_model = 64"), encoding="utf-8")
    result = CliRunner().invoke(train, [str(recipe), "--data", str(inputs[1]), "--output", str(run)])
    assert result.exit_code != 0
    assert "another recipe" in result.output
