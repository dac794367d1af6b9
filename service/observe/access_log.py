"""One line for each finished call, or for a share of them; never their texts, unless the operator wants them."""

import hashlib
import logging
from typing import Any

from service.domain.call_record import ENGINE_PHASES, CallRecord

LOGGER = "dragoman.access"

_LOG = logging.getLogger(LOGGER)

# The server's own faults, and those that callers see as its own: always logged.
_LEVELS = {"INTERNAL": logging.ERROR, "UNKNOWN": logging.ERROR, "UNAVAILABLE": logging.WARNING}


class AccessLog:
    """Logs a share `ratio` of all calls, from 0 to 1, and all that failed by the server's fault.

    Who is logged is decided by the request id alone, so that all servers log, or leave out, the same call's attempts.
    """

    def __init__(self, ratio: float, *, with_texts: bool) -> None:
        self._ratio = ratio
        self._with_texts = with_texts

    def finished(self, record: CallRecord) -> None:
        """A call has ended."""
        level = _LEVELS.get(record.code, logging.INFO)
        if level > logging.INFO or is_sampled(record.request_id, self._ratio):
            _LOG.log(level, "%s %s", record.method, record.code, extra={"fields": self._fields(record)})

    def _fields(self, record: CallRecord) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "method": record.method,
            "code": record.code,
            "milliseconds": _milliseconds(record.total_seconds),
        }
        if record.caller:
            fields["key"] = record.caller
        if record.model:
            fields |= {"model": record.model, "version": record.model_version}
        if record.texts:
            fields |= {
                "texts": len(record.texts),
                "source_tokens": record.num_source_tokens,
                "output_tokens": record.num_output_tokens,
            }
            fields |= {f"{phase.value}_ms": _milliseconds(record.seconds(phase)) for phase in ENGINE_PHASES}
            if self._with_texts:
                fields["source_texts"] = list(record.texts)
        return fields


def is_sampled(request_id: str, ratio: float) -> bool:
    """Whether a call with this id is in the share `ratio` of all; one that is, is in larger shares too."""
    if not 0.0 < ratio < 1.0:
        return ratio >= 1.0
    digest = hashlib.blake2b(request_id.encode(), digest_size=8).digest()
    return int.from_bytes(digest) < ratio * 2**64


def _milliseconds(seconds: float) -> float:
    return round(1000 * seconds, 1)
