"""`python -m benchmarks.streams`: the delay until a stream's first word reaches its reader.

A word can be sent as soon as the next piece ends it. The server runs in this process, and the engine's own thread
records when each token is certain; the readers are a separate process, and both read the same monotonic clock. The time
from the token that ends the first word to its arrival is the overhead of the server and gRPC.
"""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import click
import grpc
import numpy as np

import service.server.model_loading
import service.server.server
from benchmarks.report import write_records
from benchmarks.workload import held_out_texts, spread
from service.bundle.manifest import Manifest
from service.calls.pipeline import REQUEST_ID_KEY
from service.config.server_config import ServerConfig
from service.engine.sequence import Sequence as EngineSequence
from service.engine.sequence import SequenceProgress, SequenceUpdate
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from service.text.incremental import IncrementalDecoder
from service.text.tokenizers import Tokenizer, load_tokenizer
from service.translation.pending import EngineBridge

READERS = (1, 8)
CALL_SECONDS = 60.0
Growth = list[tuple[float, tuple[int, ...]]]  # when, and all tokens by then


class NotingBridge(EngineBridge):
    """Records on the engine's thread which tokens of which call are certain, before they are processed further."""

    noted: ClassVar[dict[str, dict[EngineSequence, Growth]]] = {}

    def on_updates(self, updates: list[SequenceUpdate], progress: list[SequenceProgress]) -> None:
        """Record the updates and handle them as in `EngineBridge.on_updates`."""
        now = time.monotonic()
        known = [(each.sequence, each.token_ids) for each in progress]
        known += [(each.sequence, each.hypotheses[0].token_ids) for each in updates if each.hypotheses]
        for sequence, token_ids in known:
            self.noted.setdefault(sequence.call.request_id, {}).setdefault(sequence, []).append((now, token_ids))
        super().on_updates(updates, progress)


@click.command()
@click.option("--models", type=click.Path(exists=True, path_type=Path), default=Path("models"), show_default=True)
@click.option("--count", default=400, show_default=True, help="Streams for each number of readers.")
@click.option("--read", hidden=True, help="Only read streams of the server at this address.")
@click.option("--readers", default=1, hidden=True)
def main(models: Path, count: int, read: str | None, readers: int) -> None:
    """Measure, print and write build/bench/streams.json."""
    if read:
        print(json.dumps(_read(read, count, readers)))
    else:
        click.echo(f"Wrote {write_records('streams', asyncio.run(_measure(models, count)))}.")


def _read(address: str, count: int, num_readers: int) -> dict[str, tuple[float, float]]:
    """Return for each call, by request id, when it was made and when its first delta arrived."""
    with grpc.insecure_channel(address) as channel:
        stub = pb_grpc.TranslationServiceStub(channel)

        def read(number: int, text: str) -> tuple[str, tuple[float, float]]:
            request = pb.TranslateRequest(texts=[text], source_language_code="en", target_language_code="de")
            name = f"readers-{num_readers}-{number}"
            called = time.monotonic()
            arrived = 0.0
            for part in stub.TranslateStream(request, timeout=CALL_SECONDS, metadata=[(REQUEST_ID_KEY, name)]):
                arrived = arrived or (time.monotonic() if part.delta else 0.0)
            return name, (called, arrived)

        with ThreadPoolExecutor(num_readers) as pool:
            return dict(pool.map(read, *zip(*enumerate(spread(held_out_texts(), count)), strict=True)))


async def _measure(models: Path, count: int) -> list[dict[str, Any]]:
    vars(service.server.model_loading)["EngineBridge"] = NotingBridge
    server = service.server.server.Server(ServerConfig(models=models, port=0, metrics_port=0, admin_port=-1))
    await server.open()
    await server.load()
    bundle = models / "en-de" / "1"
    tokenizer = load_tokenizer(Manifest.load(bundle).tokenizer, bundle)
    try:
        return [await _with_readers(server.port, tokenizer, count, each) for each in READERS]
    finally:
        await server.close()


async def _with_readers(port: int, tokenizer: Tokenizer, count: int, num_readers: int) -> dict[str, Any]:
    arguments = ["--read", f"127.0.0.1:{port}", "--count", str(count), "--readers", str(num_readers)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __spec__.name, *arguments, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    calls = json.loads(output)
    late, first, closing = [], [], []
    for name, (called, arrived) in calls.items():
        sequences = list(NotingBridge.noted[name].values())
        if len(sequences) > 1:  # several sentences: the first one need not be the first to grow
            continue
        closed = next(when for when, token_ids in sequences[0] if _has_word(tokenizer, token_ids, sequences[0]))
        late.append((arrived - closed) * 1e3)
        first.append((arrived - called) * 1e3)
        closing.append((closed - called) * 1e3)
    record = {
        "model": "en-de",
        "engine": "dragoman",
        "readers": num_readers,
        "streams": len(late),
        "first_word_ms": float(np.median(first)),
        "closed_ms": float(np.median(closing)),
        "late_median_ms": float(np.median(late)),
        "late_p99_ms": float(np.percentile(late, 99)),
        "late_max_ms": max(late),
    }
    click.echo(
        f"{num_readers} reading: {record['streams']} streams; the first word is closed {record['closed_ms']:.1f} ms "
        f"after the call and read after {record['first_word_ms']:.1f} ms (medians); the reader has it "
        f"{record['late_median_ms']:.2f} ms later (median; 99 %: {record['late_p99_ms']:.2f} ms, all: "
        f"{record['late_max_ms']:.2f} ms)"
    )
    return record


def _has_word(tokenizer: Tokenizer, token_ids: Sequence[int], growth: Growth) -> bool:
    """Return whether a word of the sequence can be sent: one has ended, or nothing more will come."""
    return token_ids == growth[-1][1] or bool(IncrementalDecoder(tokenizer).feed(token_ids))


if __name__ == "__main__":
    main()
