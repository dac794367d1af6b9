"""Our own API over HTTP, under /v1."""
