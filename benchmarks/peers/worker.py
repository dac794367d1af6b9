"""The process of one engine: loads it, then times one task per line of JSON on its standard input."""

import json
import os
import sys
import time
from typing import Any

from benchmarks.peers.peer import ENGINES, Peer, PeerSettings
from benchmarks.workload import Task


def main() -> None:
    """Answer each task with its seconds and outputs, until the input ends."""
    # The output of libraries must not be taken for an answer.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    peer = open_peer(PeerSettings(**json.loads(sys.argv[1])))
    print(json.dumps({"is_ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        task = Task(**json.loads(line))
        outputs: list[Any] = []
        started = time.perf_counter()
        for batch in task.batches:
            outputs += peer.translate(batch, task)
        seconds = time.perf_counter() - started
        print(json.dumps({"seconds": seconds, "outputs": outputs}), file=answers, flush=True)
    peer.close()


def open_peer(settings: PeerSettings) -> Peer:
    """Load the engine in this process.

    Raises:
        ValueError: there is no such engine.
    """
    # Each engine's libraries are imported only in the process that runs it.
    if settings.engine == "dragoman":
        from benchmarks.peers.dragoman import DragomanPeer

        return DragomanPeer(settings)
    if settings.engine == "ctranslate2":
        from benchmarks.peers.ct2 import CT2Peer

        return CT2Peer(settings)
    if settings.engine == "transformers":
        from benchmarks.peers.generate import GeneratePeer

        return GeneratePeer(settings)
    raise ValueError(f"engine is {settings.engine!r}; allowed: {', '.join(ENGINES)}.")


if __name__ == "__main__":
    main()
