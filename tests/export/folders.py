"""Changes in checkpoints' folders, and how such folders are refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from safetensors.torch import load_file, save_file
from torch import Tensor

from export.cli import main
from export.importers.imported import CheckpointError
from export.importers.options import NOTHING_SAID, ImportOptions
from export.importers.selection import import_checkpoint


def edit(path: Path, **values: Any) -> None:
    """Change values of a JSON file, which need not exist; `...` removes one."""
    document = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    kept = {name: value for name, value in (document | values).items() if value is not ...}
    path.write_text(json.dumps(kept), encoding="utf-8")


def edit_weights(folder: Path, change: Callable[[dict[str, Tensor]], object]) -> None:
    """Save the weights of a folder again, as `change` leaves them."""
    path = folder / "model.safetensors"
    weights = {name: value.clone() for name, value in load_file(path).items()}
    change(weights)
    save_file(weights, path, metadata={"format": "pt"})


def problems_of(folder: Path, options: ImportOptions = NOTHING_SAID) -> str:
    """Return the one line that says why a folder can't be converted."""
    with pytest.raises(CheckpointError) as error:
        import_checkpoint(folder, options=options)
    assert "\n" not in str(error.value)
    return str(error.value)


def refused(source: Path, *said: Any, output: Path | None = None) -> str:
    """Return the one line that the user sees of what can't be converted; nothing may be written."""
    output = source.parent / "out" if output is None else output
    result = CliRunner().invoke(main, ["convert", str(source), "--output", str(output), *map(str, said)])
    assert result.exit_code == 2, result.output
    assert not output.exists()
    assert list(output.parent.glob(f".{output.name}*")) == []
    (line,) = result.stderr.splitlines()
    return line
