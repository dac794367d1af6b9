"""Observability for operators: metrics, logs, traces, recent errors."""
