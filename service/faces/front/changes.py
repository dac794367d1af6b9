"""The outcome of a change that every worker was asked for, as one answer. Pure functions."""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus

from service.faces.admin.answers import Document, failure, in_json
from service.faces.front.worker import NoAnswer
from service.faces.http.application import HttpAnswer
from service.models.reload_plan import ReloadOutcome

# Of the whole, if it is that of any worker.
_OUTCOMES = (ReloadOutcome.FAILED, ReloadOutcome.CHANGED, ReloadOutcome.UNCHANGED)

Outcome = HttpAnswer | NoAnswer


def change_of(outcomes: Mapping[int, Outcome]) -> HttpAnswer:
    """Return the answer to a change: what all workers answered, or the first error and which workers have made it."""
    failed = [number for number, each in outcomes.items() if isinstance(each, NoAnswer) or each.status != HTTPStatus.OK]
    if not failed:
        return in_json(_document({number: _read(outcome) for number, outcome in outcomes.items()}))
    first = failed[0]
    done = [number for number in outcomes if number not in failed]
    code, message, headers = error_of(outcomes[first])
    return failure(code, f"worker-{first}: {message} {_outcome(done, failed)}", headers)


def error_of(outcome: Outcome) -> tuple[str, str, dict[str, str]]:
    """Return the code, the message and the headers of an answer that is an error, or of no answer."""
    if isinstance(outcome, NoAnswer):
        return ("DEADLINE_EXCEEDED" if outcome.is_late else "UNAVAILABLE"), f"it {outcome}.", {}
    try:
        error = json.loads(outcome.body)["error"]
        code, message = str(error["code"]), str(error["message"])
    except (ValueError, LookupError, TypeError):  # refused before it reached what answers operators
        code, message = "INTERNAL", f"it answered with HTTP status {int(outcome.status)}."
    return code, message, {name: value for name, value in outcome.headers.items() if name == "retry-after"}


def _read(outcome: Outcome) -> Document:
    assert isinstance(outcome, HttpAnswer)
    document: Document = json.loads(outcome.body)
    return document


def _document(documents: Mapping[int, Document]) -> Document:
    """Return the document that all have answered; of reloads with different outcomes, also each worker's."""
    outcomes = {number: document["outcome"] for number, document in documents.items() if "outcome" in document}
    if not outcomes:
        return {}
    whole = next(outcome.value for outcome in _OUTCOMES if outcome.value in outcomes.values())
    if len(set(outcomes.values())) == 1:
        return {"outcome": whole}
    return {"outcome": whole, "workers": {str(number): outcome for number, outcome in outcomes.items()}}


def _outcome(done: Sequence[int], failed: Sequence[int]) -> str:
    made = f"was made in {_names(done) or 'no worker'}."
    return f"The change also failed in {_names(failed[1:])}; it {made}" if failed[1:] else f"The change {made}"


def _names(numbers: Sequence[int]) -> str:
    return ", ".join(f"worker-{number}" for number in numbers)
