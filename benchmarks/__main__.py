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
QUICK = ("benchmarks.offline", "benchmarks.serving")  # those that accept --quick


def main() -> None:
    """Run all; with --quick, the two long ones in short."""
    is_quick = "--quick" in sys.argv[1:]
    for number, (module, *arguments) in enumerate(RUNS, start=1):
        given = [*arguments, *(["--quick"] if is_quick and module in QUICK else [])]
        print(f"== {number} of {len(RUNS)}: {' '.join([module, *given])}", flush=True)
        started = time.monotonic()
        subprocess.run([sys.executable, "-m", module, *given], check=True)
        print(f"== {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
