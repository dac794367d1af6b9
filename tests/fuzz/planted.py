"""Bugs that the fuzzer must find, so that finding none elsewhere is meaningful."""

import time


def planted(data: bytes) -> None:
    """Fail for texts that only a fuzzer guided by coverage and comparisons finds."""
    text = data.decode("latin-1")
    if text.startswith("<!--"):
        assert not text.endswith("-->"), "the planted bug"


def planted_slow(data: bytes) -> None:
    """Take quadratic time for input that begins with a tag."""
    if data.decode("latin-1").startswith("<b>"):
        until = time.process_time() + 1.5
        while time.process_time() < until:
            pass
