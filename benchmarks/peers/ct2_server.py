"""CTranslate2 behind a minimal gRPC server: our service's `Translate`, our tokenizer, static dynamic batching.

Requests are gathered until the batch is full or its time is over; it then runs to its end in a thread. With inter
threads, as many batches run at the same time. No interceptors, metrics, health or options.
"""

import asyncio
import signal
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import ctranslate2
import grpc

from benchmarks.cpu_times import ENGINE_PREFIX
from benchmarks.peers.token_names import token_id, token_name
from service.bundle.manifest_parts import TokenizerSpec
from service.faces.grpc.pb.dragoman.v1 import translation_pb2 as pb
from service.faces.grpc.pb.dragoman.v1 import translation_pb2_grpc as pb_grpc
from service.text.tokenizers import load_tokenizer

EOS_ID = 2
THREAD_NAME = Path("/proc/thread-self/comm")
Waiting = tuple[list[str], "asyncio.Future[list[str]]"]


class Batcher:
    """Gathers requests into batches."""

    def __init__(
        self, translator: Any, num_workers: int, batch_size: int, wait_seconds: float, options: dict[str, Any]
    ) -> None:
        self._translator = translator
        self._batch_size = batch_size
        self._wait_seconds = wait_seconds
        self._options = options
        self._waiting: asyncio.Queue[Waiting] = asyncio.Queue()
        self._pool = ThreadPoolExecutor(num_workers)
        self._workers = [asyncio.ensure_future(self._work()) for _ in range(num_workers)]

    @property
    def num_waiting(self) -> int:
        """Return the number of sources that are in no batch yet."""
        return self._waiting.qsize()

    async def translate(self, source: list[str]) -> list[str]:
        """Return the output tokens of one source."""
        outcome: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait((source, outcome))
        return await outcome

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            batch = [await self._waiting.get()]
            until = time.monotonic() + self._wait_seconds
            self._take(batch)
            while len(batch) < self._batch_size and (pause := until - time.monotonic()) > 0:
                await asyncio.sleep(min(pause, 0.002))
                self._take(batch)
            batch = [(source, outcome) for source, outcome in batch if not outcome.done()]  # callers may be gone
            if not batch:
                continue
            sources = [source for source, _ in batch]
            try:
                results = await loop.run_in_executor(self._pool, self._run, sources)
            except Exception as error:
                for _, outcome in batch:
                    if not outcome.done():
                        outcome.set_exception(error)
                continue
            for (_, outcome), result in zip(batch, results, strict=True):
                if not outcome.done():
                    outcome.set_result(result.hypotheses[0])

    def _take(self, batch: list[Waiting]) -> None:
        while len(batch) < self._batch_size and not self._waiting.empty():
            batch.append(self._waiting.get_nowait())

    def _run(self, sources: Sequence[list[str]]) -> list[Any]:
        results: list[Any] = self._translator.translate_batch(sources, beam_size=1, **self._options)
        return results


class Servicer(pb_grpc.TranslationServiceServicer):
    """Implements only `Translate`."""

    def __init__(self, batcher: Batcher, tokenizer: Any, max_waiting: int) -> None:
        self._batcher = batcher
        self._tokenizer = tokenizer
        self._max_waiting = max_waiting

    async def Translate(self, request: Any, context: Any) -> pb.TranslateResponse:  # noqa: N802
        """Translate texts, greedily."""
        if self._batcher.num_waiting + len(request.texts) > self._max_waiting:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "The queue is full.")
        sources = [[*map(token_name, self._tokenizer.encode(text)), token_name(EOS_ID)] for text in request.texts]
        outputs = await asyncio.gather(*map(self._batcher.translate, sources))
        translations = []
        for output in outputs:
            text = self._tokenizer.decode([token_id(name) for name in output])
            translations.append(
                pb.Translation(text=text, hypotheses=[pb.Hypothesis(text=text, num_tokens=len(output))])
            )
        return pb.TranslateResponse(translations=translations)


@click.command()
@click.option("--model", required=True, type=click.Path(exists=True))
@click.option("--tokenizer", required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--compute-type", default="int8")
@click.option("--inter-threads", default=1)
@click.option("--intra-threads", default=2)
@click.option("--batch-size", default=32)
@click.option("--wait-ms", default=0.0)
@click.option("--max-waiting", default=4096)
@click.option("--max-output-tokens", default=128)
@click.option("--min-output-tokens", default=1)
def main(**settings: Any) -> None:
    """Serve until SIGTERM."""
    asyncio.run(_serve(**settings))


async def _serve(
    model: str,
    tokenizer: Path,
    compute_type: str,
    inter_threads: int,
    intra_threads: int,
    batch_size: int,
    wait_ms: float,
    max_waiting: int,
    max_output_tokens: int,
    min_output_tokens: int,
) -> None:
    translator = _translator(model, compute_type, inter_threads, intra_threads)
    options = {"max_decoding_length": max_output_tokens, "min_decoding_length": min_output_tokens}
    batcher = Batcher(translator, inter_threads, batch_size, wait_ms / 1e3, options)
    spec = TokenizerSpec("sentencepiece", tokenizer.name, 1, EOS_ID, 3, EOS_ID)
    server = grpc.aio.server()
    pb_grpc.add_TranslationServiceServicer_to_server(
        Servicer(batcher, load_tokenizer(spec, tokenizer.parent), max_waiting), server
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    await batcher.translate([token_name(8), token_name(EOS_ID)])  # warm up
    print(f"CTranslate2 is ready: gRPC on 127.0.0.1:{port}. ", flush=True)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    await server.stop(1.0)


def _translator(model: str, compute_type: str, inter_threads: int, intra_threads: int) -> Any:
    """Return a translator whose threads are named `engine`, so that their CPU time can be told from the server's."""
    own_name = THREAD_NAME.read_text(encoding="ascii").strip()
    THREAD_NAME.write_text(ENGINE_PREFIX, encoding="ascii")  # threads inherit the name of the one that starts them
    translator = ctranslate2.Translator(
        model, device="cpu", compute_type=compute_type, inter_threads=inter_threads, intra_threads=intra_threads
    )
    THREAD_NAME.write_text(own_name, encoding="ascii")
    return translator


if __name__ == "__main__":
    main()
