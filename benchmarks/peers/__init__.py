"""The engines under comparison, each in a separate process."""
