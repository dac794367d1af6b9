"""The group of commands, whose errors of missing packages become a line that says how to install them."""

import sys
from typing import Any

import click

_INSTALL = "pip install ./client '.[{extras}]' in a checkout of Dragoman"
EXTRAS_OF_PACKAGES = {
    **dict.fromkeys(("ml_dtypes", "onnx", "safetensors", "zstandard"), "cpu,convert"),
    **dict.fromkeys(("matplotlib", "onnx_ir", "onnxscript", "sacrebleu", "torch", "transformers"), "cpu,export"),
    **dict.fromkeys(("numpy", "onnxruntime", "sentencepiece", "tokenizers", "tqdm", "yaml"), "cpu"),
    "huggingface_hub": "hub",
}


def how_to_install(package: str) -> str:
    """Return the command that installs a package which an extra of ours names; empty for any other package."""
    return _INSTALL.format(extras=EXTRAS_OF_PACKAGES[package]) if package in EXTRAS_OF_PACKAGES else ""


class CommandGroup(click.Group):
    """Ends with exit code 1 and one line if a command needs a package that is not installed."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            advice = how_to_install(package)
            if not advice:
                raise
            click.echo(f"export: {package} is not installed, which this command needs; {advice}.", err=True)
            sys.exit(1)
