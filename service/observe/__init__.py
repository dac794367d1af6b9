"""What operators see: metrics, logs, traces, recent errors."""
