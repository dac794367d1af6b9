"""The location of weights too large for a graph's own file. Separate from tracing, which imports torch."""

from pathlib import Path


def external_data(graph: Path) -> Path:
    """Return the path of the weights file beside `graph`, whether or not it exists."""
    return graph.with_name(f"{graph.name}.data")


def has_external_data(*graphs: Path) -> bool:
    """Return whether any graph has external weights: gigabytes, which fit into memory once but not many times."""
    return any(external_data(graph).exists() for graph in graphs)
