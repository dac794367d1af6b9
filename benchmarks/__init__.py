"""Measurements of Dragoman's promises and their cost on this machine. Run by hand, never by the tests."""
