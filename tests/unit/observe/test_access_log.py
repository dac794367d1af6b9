"""Which calls are logged and with which fields, and which errors are kept."""

import logging
from unittest.mock import Mock

import pytest

from service.domain.call import Call, Caller, Phase
from service.observe.access_log import LOGGER, AccessLog, is_sampled
from service.observe.recent_errors import NUM_KEPT, RecentErrors

CI = Caller("ci", "", Mock())
IDS = [f"{number:016x}" for number in range(4000)]


def logged(caplog: pytest.LogCaptureFixture, log: AccessLog, *records: Call) -> list[logging.LogRecord]:
    caplog.clear()
    with caplog.at_level(logging.INFO, LOGGER):
        for record in records:
            log.finished(record)
    return caplog.records


def test_the_id_alone_decides_and_larger_shares_hold_smaller_ones() -> None:
    tenth, half = ({each for each in IDS if is_sampled(each, ratio)} for ratio in (0.1, 0.5))
    assert tenth == {each for each in reversed(IDS) if is_sampled(each, 0.1)}
    assert tenth < half
    assert 0.08 < len(tenth) / len(IDS) < 0.12
    assert 0.46 < len(half) / len(IDS) < 0.54
    assert not any(is_sampled(each, 0.0) for each in IDS)
    assert all(is_sampled(each, 1.0) for each in IDS)


@pytest.mark.parametrize(
    ("code", "level"),
    [("INTERNAL", "ERROR"), ("UNAVAILABLE", "WARNING"), ("OK", None), ("INVALID_ARGUMENT", None), ("CANCELLED", None)],
)
def test_the_server_s_faults_are_always_logged(caplog: pytest.LogCaptureFixture, code: str, level: str | None) -> None:
    record = Call("m", "r", code=code)
    assert [each.levelname for each in logged(caplog, AccessLog(0.0, with_texts=False), record)] == [level] * bool(
        level
    )
    (line,) = logged(caplog, AccessLog(1.0, with_texts=False), record)
    assert line.getMessage() == f"m {code}"


def test_a_line_tells_what_the_record_tells(caplog: pytest.LogCaptureFixture) -> None:
    record = Call("m", "r", began_seconds=1.0, ended_seconds=1.25, caller=CI, texts=("secret", "more"), num_texts=2)
    record.uses("tiny", "3")
    record.num_source_tokens, record.num_output_tokens = 7, 9
    record.intervals.append((Phase.QUEUE, 1.0, 1.1))
    record.intervals.append((Phase.DECODE, 1.1, 1.2))
    expected = {
        "method": "m",
        "code": "OK",
        "milliseconds": 250.0,
        "key": "ci",
        "model": "tiny",
        "version": "3",
        "texts": 2,
        "characters": 10,
        "source_tokens": 7,
        "output_tokens": 9,
        "queue_ms": 100.0,
        "encode_ms": 0.0,
        "decode_ms": 100.0,
    }
    (line,) = logged(caplog, AccessLog(1.0, with_texts=False), record)
    assert vars(line)["fields"] == expected
    (line,) = logged(caplog, AccessLog(1.0, with_texts=True), record)
    assert vars(line)["fields"] == expected | {"source_texts": ["secret", "more"]}


def test_the_last_errors_are_kept_newest_first_and_in_short() -> None:
    errors = RecentErrors()
    for number in range(NUM_KEPT + 3):
        errors.note(str(number), "method", "INTERNAL", "long " * 1000)
    assert [error.request_id for error in errors.latest()] == [str(n) for n in range(NUM_KEPT + 2, 2, -1)]
    assert len(errors.latest()[0].message) == 300
