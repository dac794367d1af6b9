"""`python -m export`."""

from export.cli import main

main(prog_name="python -m export")
