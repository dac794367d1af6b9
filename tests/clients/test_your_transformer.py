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


# Both in one process: most of the time of each goes to importing torch, and to its first trace.
TRAIN_AND_CONVERT = """
import runpy, sys
runpy.run_path("train.py")
sys.argv[0] = "export"
runpy.run_module("export", run_name="__main__")
"""


def run(folder: Path, *command: str) -> str:
    """Run Python in the folder; return what it prints."""
    ended = subprocess.run(
        [sys.executable, *command],
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
    (config,) = re.findall(r"^config = (.*)$", PAGE, re.MULTILINE)
    (tmp_path / "config.json").write_text(json.dumps(ast.literal_eval(config)), encoding="utf-8")
    (command,) = re.findall(r"^python -m export (convert [^`]*--like.*?)\n```", PAGE, re.DOTALL | re.MULTILINE)
    assert "\npython train.py\npython -m service serve --models models\npython call.py " in PAGE
    said = run(tmp_path, "-c", TRAIN_AND_CONVERT, *shlex.split(command.replace("\\\n", "")))
    for compared in ("same tokens as its author's Seq2SeqTransformer", "int8 against float on"):
        assert compared in said
    assert "warning" not in said
    by_module, by_file = (
        json.loads((tmp_path / "models/en-de" / version / "manifest.json").read_text("utf-8"))["checksums"]
        for version in ("1", "2")
    )
    assert by_module == by_file
    call = tmp_path / "call.py"
    with ServerProcess(tmp_path / "models") as server:
        call.write_text(call.read_text("utf-8").replace("127.0.0.1:50051", server.address), encoding="utf-8")
        assert run(tmp_path, "call.py") == "heute kaufe ich zwei Bücher\n"
