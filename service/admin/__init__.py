"""What operators see and do over HTTP: the status page, its numbers, and calls that change something."""
