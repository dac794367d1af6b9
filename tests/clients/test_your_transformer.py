"""The page docs/your-transformer.md, run as written, except for the port: from a training loop to a gRPC call."""

import ast
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.patience import patient
from tests.servers import REPOSITORY, ServerProcess, environment

PAGE = (REPOSITORY / "docs/your-transformer.md").read_text(encoding="utf-8")


def run(folder: Path, *command: str) -> str:
    """Run one of the page's commands in the folder; return what it prints."""
    assert " ".join(command) in PAGE.replace(" \\\n   ", "")
    ended = subprocess.run(
        [sys.executable, *command[1:]],
        cwd=folder,
        env=environment() | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=patient(120),
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_from_a_training_loop_to_a_call(tmp_path: Path) -> None:
    for name, code in re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.DOTALL):
        with (tmp_path / name).open("a", encoding="utf-8") as file:  # which a block begins or goes on with
            file.write(code)
    said = run(tmp_path, "python", "train.py")
    for precision in ("the service's engine gives the same tokens", "int8 against float on"):
        assert precision in said
    assert "warning" not in said
    (config,) = re.findall(r"^config = (.*)$", PAGE, re.MULTILINE)
    (tmp_path / "config.json").write_text(json.dumps(ast.literal_eval(config)), encoding="utf-8")
    (command,) = re.findall(r"^python -m export convert [^`]*--like.*?\n```", PAGE, re.DOTALL | re.MULTILINE)
    run(tmp_path, *shlex.split(command.removesuffix("```").replace("\\\n", "")))
    by_module, by_file = (
        json.loads((tmp_path / "models/en-de" / version / "manifest.json").read_text("utf-8"))["checksums"]
        for version in ("2", "3")
    )
    assert by_module == by_file
    assert "\npython -m service serve --models models\n" in PAGE
    call = tmp_path / "call.py"
    with ServerProcess(tmp_path / "models") as server:
        call.write_text(call.read_text("utf-8").replace("127.0.0.1:50051", server.address), encoding="utf-8")
        assert run(tmp_path, "python", "call.py") == "heute kaufe ich zwei Bücher\n"
