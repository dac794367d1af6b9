"""Measurements: what Dragoman's promises cost and hold on this machine. Run by hand, never by the tests."""
