"""How many connections the limit on open files allows."""

import resource


def affordable_connections(most: int, num_ports: int = 1) -> int:
    """Return how many connections each of `num_ports` ports may have: `most`, or what `ulimit -n` allows."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # For everything else: both HTTP ports of operators, and files of models, certificates and keys.
    reserved = 256
    return max(min(most, max(limit - reserved, limit // 2) // num_ports), 1)
