"""Construction and lifecycle of the whole server, in one process or in several."""
