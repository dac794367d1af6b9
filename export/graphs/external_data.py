"""Where a graph's weights lie that are too large for its own file. Apart from tracing, which needs torch to import."""

from pathlib import Path


def external_data(graph: Path) -> Path:
    """The file beside `graph`, whether it is there or not."""
    return graph.with_name(f"{graph.name}.data")


def has_external_data(*graphs: Path) -> bool:
    """Whether any of them is so large: gigabytes, which fit into memory once but not many times."""
    return any(external_data(graph).exists() for graph in graphs)
