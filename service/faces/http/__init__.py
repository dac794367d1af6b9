"""HTTP: the listener of both ports, and the paths for monitoring."""
