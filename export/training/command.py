"""The `train` and `score` commands. What they do is imported with their first use: torch alone takes seconds."""

from pathlib import Path

import click

EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
EXISTING_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command(short_help="Train the model of RECIPE.")
@click.argument("recipe_path", metavar="RECIPE", type=EXISTING_FILE)
@click.option(
    "--data", "data", type=EXISTING_FILE, multiple=True, required=True, help="source<TAB>target<TAB>set, .xz or plain."
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Run folder; resumed if it exists.",
)
@click.option("--init", "init", type=EXISTING_FOLDER, help="Start from this checkpoint's weights and tokenizer.")
@click.option(
    "--finish",
    "finish_steps",
    type=click.IntRange(1),
    metavar="STEPS",
    help="Finish the run in OUTPUT: let its learning rates decay over this many steps.",
)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--compile/--no-compile", "compile_", default=None, help="torch.compile; default: on CUDA only.")
@click.option(
    "--bfloat16/--no-bfloat16", default=None, help="Autocast; default: where the hardware has bfloat16 units."
)
@click.option("--threads", type=click.IntRange(1), help="CPU threads; default: torch's choice.")
def train(
    recipe_path: Path,
    data: tuple[Path, ...],
    output: Path,
    init: Path | None,
    finish_steps: int | None,
    device: str,
    compile_: bool | None,
    bfloat16: bool | None,
    threads: int | None,
) -> None:
    """Train the model of RECIPE; the best weights so far are in OUTPUT/checkpoint.

    SIGINT and SIGTERM end a run after the current step; start it again to continue.
    """
    from export.training.run import run_training

    run_training(recipe_path, data, output, init, finish_steps, device, compile_, bfloat16, threads)


@click.command(short_help="Print BLEU and chrF of CHECKPOINT.")
@click.argument("checkpoint", type=EXISTING_FOLDER)
@click.argument("files", type=EXISTING_FILE, nargs=-1, required=True)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the scores there as JSON.")
def score(checkpoint: Path, files: tuple[Path, ...], device: str, output: Path | None) -> None:
    """Print BLEU and chrF of CHECKPOINT (greedy, float32) for each part of FILES (source<TAB>reference<TAB>set)."""
    from export.training.run import print_scores

    print_scores(checkpoint, files, device, output)
