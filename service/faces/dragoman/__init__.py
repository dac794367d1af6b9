"""Our own API."""
