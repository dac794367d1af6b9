"""Our own checkpoints."""
