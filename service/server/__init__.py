"""Construction and lifecycle of the whole server."""
