import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.bulk.shards import Shard, parse_shard


@given(st.integers(1, 40), st.integers(1, 20), st.integers(1, 20))
def test_every_chunk_belongs_to_one_shard(count: int, num_files: int, num_chunks: int) -> None:
    shards = [Shard(index, count) for index in range(count)]
    for file in range(num_files):
        for chunk in range(num_chunks):
            (owner,) = [shard for shard in shards if shard.has(file, chunk, num_files)]
            assert owner.has_file(file, num_files)


@given(st.integers(1, 40), st.integers(0, 40))
def test_with_many_files_each_is_read_by_one_shard(count: int, more: int) -> None:
    num_files = count + more
    for file in range(num_files):
        assert sum(Shard(index, count).has_file(file, num_files) for index in range(count)) == 1


@pytest.mark.parametrize(
    ("written", "environment", "shard"),
    [
        ("0/1", {}, Shard(0, 1)),
        ("7/8", {"JOB_COMPLETION_INDEX": "1"}, Shard(7, 8)),
        ("/8", {"JOB_COMPLETION_INDEX": "0"}, Shard(0, 8)),
        ("/8", {"SLURM_ARRAY_TASK_ID": "5"}, Shard(5, 8)),
    ],
)
def test_a_shard_is_read(written: str, environment: dict[str, str], shard: Shard) -> None:
    assert parse_shard(written, environment) == shard


@pytest.mark.parametrize(
    ("written", "environment", "told"),
    [
        ("8/8", {}, "has the index 8; indices go from 0 to 7"),
        ("/8", {"SLURM_ARRAY_TASK_ID": "8"}, "index 8, by SLURM_ARRAY_TASK_ID; indices go from 0 to 7"),
        ("/8", {}, "none of JOB_COMPLETION_INDEX, SLURM_ARRAY_TASK_ID"),
        ("1/0", {}, "is not a shard"),
        ("1 of 8", {}, "is not a shard"),
        ("-1/8", {}, "is not a shard"),
    ],
)
def test_what_is_no_shard_is_refused(written: str, environment: dict[str, str], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        parse_shard(written, environment)
