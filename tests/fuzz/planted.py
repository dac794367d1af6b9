"""Bugs that the fuzzer must find, so that finding none elsewhere says something."""

import time


def planted(data: bytes) -> None:
    """Fails for texts that only a fuzzer that sees coverage and comparisons comes upon."""
    text = data.decode("latin-1")
    if text.startswith("<!--"):
        assert not text.endswith("-->"), "the planted bug"


def planted_slow(data: bytes) -> None:
    """Takes quadratic time for what begins with a tag."""
    if data.decode("latin-1").startswith("<b>"):
        until = time.process_time() + 1.5
        while time.process_time() < until:
            pass
