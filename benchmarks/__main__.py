"""`make bench`: runs all measurements of docs/benchmarks.md one after the other; each prints its table."""

import subprocess
import sys
import time

SENTENCES = "checkpoints/en-de/sentences.tsv"
RUNS = (
    ["benchmarks.offline"],
    ["benchmarks.serving"],
    ["benchmarks.overload"],
    ["benchmarks.inside"],
    ["benchmarks.scale"],
    ["benchmarks.limit"],
    ["benchmarks.kernel_rates"],
    ["benchmarks.call_costs"],
    ["benchmarks.cli_file"],
    ["benchmarks.streams"],
    ["benchmarks.int8_quality"],
    ["benchmarks.invariance", SENTENCES],
    ["benchmarks.load", SENTENCES],
    ["benchmarks.load", SENTENCES, "--beam-size", "4", "--count", "500"],
    ["benchmarks.load", SENTENCES, "--face", "http"],
)


def main() -> None:
    """Run all."""
    for number, command in enumerate(RUNS, start=1):
        print(f"== {number} of {len(RUNS)}: {' '.join(command)}", flush=True)
        started = time.monotonic()
        subprocess.run([sys.executable, "-m", *command], check=True)
        print(f"== {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
