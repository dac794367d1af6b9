"""Coverage-guided fuzzing of all readers of foreign bytes: `python -m tests.fuzz markup --seconds 60`, or `all`.

Findings are written to build/fuzz/TARGET: inputs that failed, the log with the traceback, and the corpus, with which
the next session starts. Add an input that failed to tests/fuzz/corpus/TARGET together with the fix.
"""

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from tests.fuzz import runner

REPOSITORY = Path(__file__).resolve().parents[2]


def main() -> int:
    """Return exit status 1 if something was found, 2 if nothing can be run."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", nargs="+", help="what to fuzz; 'all' for each in turn")
    parser.add_argument("--seconds", type=int, default=60, help="for each target (default: 60)")
    parser.add_argument("--runs", type=int, help="inputs for each target, instead of --seconds")
    parser.add_argument("--seed", type=int, default=1, help="of random choices (default: 1)")
    parser.add_argument("--output", type=Path, default=REPOSITORY / "build" / "fuzz", help="default: build/fuzz")
    arguments = parser.parse_args()
    if not runner.is_available():
        print("atheris is not installed; it runs on Linux on x86-64 (pip install atheris).", file=sys.stderr)
        return 2
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the targets run in forks
    with runner.instrumented():
        from tests.fuzz.targets import CORPUS, PLANTED, TARGETS
    known = TARGETS | PLANTED
    names = list(TARGETS) if arguments.target == ["all"] else arguments.target
    if unknown := [name for name in names if name not in known]:
        print(f"no target {unknown[0]!r}; there are all, {', '.join(TARGETS)}.", file=sys.stderr)
        return 2
    limit = ("max_total_time", arguments.seconds) if arguments.runs is None else ("runs", arguments.runs)
    sessions = []
    for name in names:
        seeds = [folder for folder in [CORPUS / name] if folder.is_dir()]
        session = runner.fuzz(name, known[name], seeds, arguments.output / name, limit, arguments.seed)
        sessions.append(session)
        print(
            f"{name:24} {session.num_runs:9,} runs {session.num_edges:6,} edges {session.num_kept:6,} kept  "
            f"{', '.join(map(str, session.findings)) or 'nothing found'}",
            flush=True,
        )
    results = json.dumps([asdict(session) for session in sessions], default=str, indent=2)
    (arguments.output / "sessions.json").write_text(results + "\n", encoding="utf-8")
    return int(any(session.findings for session in sessions))


if __name__ == "__main__":
    sys.exit(main())
