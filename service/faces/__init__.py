"""Protocols for callers: each face only maps its messages to the domain and back."""
