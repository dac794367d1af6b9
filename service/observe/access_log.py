"""One log line for each finished call, or for a share of them; without their texts, unless the operator enables it."""

import hashlib
import logging
from typing import Any

from service.domain.call import ENGINE_PHASES, Call

LOGGER = "dragoman.access"

_LOG = logging.getLogger(LOGGER)

# The server's faults, including those that only appear so to callers: always logged.
_LEVELS = {"INTERNAL": logging.ERROR, "UNKNOWN": logging.ERROR, "UNAVAILABLE": logging.WARNING}


class AccessLog:
    """Logs a share `ratio` of all calls, from 0 to 1, and all calls that failed by the server's fault.

    The choice depends on the request id alone, so that all servers log, or skip, all attempts of the same call.
    """

    def __init__(self, ratio: float, *, with_texts: bool) -> None:
        self._ratio = ratio
        self._with_texts = with_texts

    def finished(self, call: Call) -> None:
        level = _LEVELS.get(call.code, logging.INFO)
        if level > logging.INFO or is_sampled(call.request_id, self._ratio):
            _LOG.log(level, "%s %s", call.method, call.code, extra={"fields": self._fields(call)})

    def _fields(self, call: Call) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "method": call.method,
            "code": call.code,
            "milliseconds": _milliseconds(call.total_seconds),
        }
        if call.key_name:
            fields["key"] = call.key_name
        if call.model:
            fields |= {"model": call.model, "version": call.model_version}
        if call.num_texts:
            fields |= {
                "texts": call.num_texts,
                "characters": call.characters(),
                "source_tokens": call.num_source_tokens,
                "output_tokens": call.num_output_tokens,
            }
            fields |= {f"{phase.value}_ms": _milliseconds(call.seconds(phase)) for phase in ENGINE_PHASES}
            if self._with_texts:
                fields["source_texts"] = list(call.texts)
        return fields


def is_sampled(request_id: str, ratio: float) -> bool:
    """Return whether a call with this id is in the share `ratio` of all calls; larger shares include smaller ones."""
    if not 0.0 < ratio < 1.0:
        return ratio >= 1.0
    digest = hashlib.blake2b(request_id.encode(), digest_size=8).digest()
    return int.from_bytes(digest) < ratio * 2**64


def _milliseconds(seconds: float) -> float:
    return round(1000 * seconds, 1)
