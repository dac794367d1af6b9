"""A job of Ray Data with checkpoints, for `benchmarks.bulk`; Ray is no dependency of this project's tests."""

import click

from service.bulk.ray_data import ray_translate
from service.bulk.run import ROWS_PER_PART


@click.command()
@click.argument("tables")
@click.argument("output")
@click.option("--models", required=True)
@click.option("--actors", default=2, show_default=True)
@click.option("--cpus", default=2, show_default=True, help="Of the node, as Ray counts them.")
@click.option("--resource", help="What an actor takes one of, on its node.")
@click.option("--rows-per-block", default=ROWS_PER_PART, show_default=True)
@click.option("--start-seconds", default=900, show_default=True, help="How long to wait for the actors.")
@click.option("--folder", required=True, help="For Ray's own files and the checkpoint.")
def main(
    tables: str,
    output: str,
    models: str,
    actors: int,
    cpus: int,
    resource: str | None,
    rows_per_block: int,
    start_seconds: int,
    folder: str,
) -> None:
    """Translate the Parquet files in TABLES from English to German; rows that a checkpoint has are left out."""
    import ray
    from ray.data.checkpoint import CheckpointConfig

    ray.init(num_cpus=cpus, include_dashboard=False, log_to_driver=False, _temp_dir=f"{folder}/ray")
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.wait_for_min_actors_s = start_seconds
    context.checkpoint_config = CheckpointConfig(
        id_column="id", checkpoint_path=f"{folder}/checkpoint", delete_checkpoint_on_success=False
    )
    rows = ray.data.read_parquet(tables)
    rows = ray_translate(
        rows,
        models,
        source="en",
        target="de",
        num_actors=actors,
        threads_per_actor=1,
        resources={resource: 1} if resource else None,
        rows_per_block=rows_per_block,
    )
    rows.write_parquet(output)


if __name__ == "__main__":
    main()
