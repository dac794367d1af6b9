"""`make bench`: all measurements that need nothing but the shipped model, one after the other."""

import subprocess
import sys

SENTENCES = "checkpoints/en-de/sentences.tsv"
RUNS = (
    ["benchmarks.step_time"],
    ["benchmarks.load", SENTENCES],
    ["benchmarks.load", SENTENCES, "--beam-size", "4", "--count", "500"],
)

if __name__ == "__main__":
    for module, *arguments in RUNS:
        print(f"== {module} {' '.join(arguments)}", flush=True)
        subprocess.run([sys.executable, "-m", module, *arguments], check=True)
