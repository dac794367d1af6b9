"""Translation as a step of a Ray Data pipeline, with an engine in each of several actors.

The defaults avoid faults seen with Ray 2.60: actors that reserve all CPUs leave none for reading and writing, and the
job hangs silently; a synchronous function drains the engine after each batch; a small table is one block, hence one
actor; Ray waits forever for actors that no node can hold.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from service.bulk.parquet import ArrowRows, with_results
from service.bulk.pipeline import Pipeline
from service.bulk.run import ROWS_PER_PART, Job, answer
from service.bulk.table import check_columns
from service.domain.translation import TranslationRequest

if TYPE_CHECKING:
    import ray.data

_BATCHES_IN_FLIGHT = 2  # of an actor, so that its engine always has rows that wait
# A checkpoint's filter, one actor, takes a CPU until the end of the job; another is for the tasks that read and write.
_CPUS_OF_CHECKPOINT = 2


class _Translate:
    """An actor: loads the models once, then translates batches side by side."""

    def __init__(self, models: str, job: Job, settings: Mapping[str, Any]) -> None:
        self._pipeline = Pipeline(Path(models), **settings)
        self._job = job
        self._loading: asyncio.Future[Pipeline] | None = None

    async def __call__(self, table: pa.Table) -> AsyncIterator[pa.Table]:
        check_columns(ArrowRows(table), self._job.columns_read(), ())
        yield with_results(await answer(await self._loaded(), ArrowRows(table), self._job))

    async def _loaded(self) -> Pipeline:
        if self._loading is None:  # the first of several batches
            self._loading = asyncio.ensure_future(self._pipeline.__aenter__())
        return await self._loading


def ray_translate(
    dataset: "ray.data.Dataset",
    models: str | Path,
    *,
    target: str = "",
    source: str = "",
    column: str = "text",
    translation_column: str = "translation",
    source_column: str = "",
    target_column: str = "",
    request: TranslationRequest | None = None,
    num_actors: int | tuple[int, int] = 1,
    threads_per_actor: int = 0,
    resources: Mapping[str, float] | None = None,
    num_gpus: float = 0,
    rows_per_block: int = ROWS_PER_PART,
) -> "ray.data.Dataset":
    """Return the dataset with columns for each row's translation, finish_reason, flags, source_language and error.

    `models` is a bundle or repository on every node. `source` may be left out; `source_column` and `target_column` name
    columns of languages, which take precedence. `num_actors` is the number of engines, or the least and the most; each
    has `threads_per_actor` threads, 0 for all CPUs of its node. `resources` are custom resources that each actor takes,
    such as {"translator": 1} to have one on each node; it takes no CPU of Ray's, which are for reading and writing.
    With `num_gpus`, models run on CUDA. `rows_per_block` is what a killed task repeats; small blocks cost more, and
    become more files.
    """
    import ray  # here, so that the rest works without the extra `ray`
    from ray.data import ActorPoolStrategy

    context = dataset.context
    if context.wait_for_min_actors_s <= 0:
        # Ray waits for ever by default. Nodes that a cluster adds on demand may take minutes; models are loaded later.
        context.wait_for_min_actors_s = 900
    if context.checkpoint_config is not None and ray.is_initialized():
        cpus = ray.cluster_resources().get("CPU", 0)
        if 0 < cpus < _CPUS_OF_CHECKPOINT:  # none yet: a cluster that adds nodes on demand
            raise ValueError(
                f"the cluster has {cpus:g} CPU; with fewer than {_CPUS_OF_CHECKPOINT}, a job with a checkpoint "
                "hangs, as the checkpoint's filter takes one. Give Ray more; actors that translate take none."
            )
    job = Job(
        column,
        translation_column,
        source,
        target,
        source_column,
        target_column,
        request or TranslationRequest((), "", ""),
    )
    settings = {"num_threads": threads_per_actor, "device": "cuda" if num_gpus else "cpu"}
    if isinstance(num_actors, int):
        num_actors = num_actors, num_actors
    return dataset.repartition(target_num_rows_per_block=rows_per_block).map_batches(
        _Translate,
        fn_constructor_args=(str(models), job, settings),
        batch_size=rows_per_block,
        batch_format="pyarrow",
        compute=ActorPoolStrategy(
            min_size=num_actors[0],
            max_size=num_actors[1],
            max_tasks_in_flight_per_actor=_BATCHES_IN_FLIGHT,
            max_concurrent_calls_per_actor=_BATCHES_IN_FLIGHT,
        ),
        num_cpus=0,
        num_gpus=num_gpus,
        resources=dict(resources or {}),
    )
