"""Products per second of the kernels on one thread, by shape and rows, beside what registers or memory alone can do."""

import subprocess
import tempfile
from pathlib import Path
from typing import Any

import click

from benchmarks.report import write_records
from service.engine.runtime.kernels import find_kernels

_SOURCE = Path(__file__).with_suffix(".cpp")
_KERNELS = Path(__file__).parents[1] / "kernels"
_CACHES = {18: "256 KiB", 21: "2 MiB", 24: "16 MiB", 27: "128 MiB"}  # by the logarithm of the bytes


@click.command()
@click.option("--rounds", default=200, show_default=True, help="Of which the best counts.")
@click.option("--compiler", default="g++", show_default=True)
def main(rounds: int, compiler: str) -> None:
    """Measure, print and write build/bench/kernel_rates.json."""
    kernels = find_kernels()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "kernel_rates"
        flags = ("-std=c++17", "-O3", f"-I{_KERNELS / 'src'}", str(_SOURCE), "-o", str(program), "-ldl")
        subprocess.run([compiler, *flags], check=True)
        done = subprocess.run(
            [program, kernels.path, kernels.instruction_set, str(rounds)], check=True, stdout=subprocess.PIPE, text=True
        )
    name, rows = kernels.instruction_set, [line.split() for line in done.stdout.splitlines()]
    peak = max((float(work) / float(seconds) for kind, *_, seconds, work in rows if kind == "registers"), default=0.0)
    records: list[dict[str, Any]] = []
    for kind, inputs, outputs, num_rows, seconds, work in rows:
        rate = float(work) / float(seconds)
        record: dict[str, Any] = {"kind": kind, "instruction_set": name, "seconds": float(seconds), "rate": rate}
        if kind == "read":
            size = _CACHES[int(work).bit_length() - 1]
            record |= {"bytes": int(work), "line": f"{name}: {size} are read at {rate / 1e9:.1f} GB/s"}
        elif kind == "registers":
            record["line"] = f"{name}: registers alone make {rate / 1e9:.0f} G multiply-adds/s"
        else:
            share = rate / peak if peak else None
            shown = "" if share is None else f", {share:.0%} of registers alone"
            line = f"{name}: {inputs} x {outputs}, {num_rows} rows: {rate / 1e9:.0f} G multiply-adds/s{shown}"
            shape = {"inputs": int(inputs), "outputs": int(outputs), "rows": int(num_rows)}
            record |= {**shape, "share_of_registers": share, "line": line}
        click.echo(record["line"])
        records.append(record)
    click.echo(f"Wrote {write_records('kernel_rates', records)}.")


if __name__ == "__main__":
    main()
