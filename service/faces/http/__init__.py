"""HTTP: the listener of both ports, and what monitoring asks for."""
