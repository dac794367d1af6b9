"""The only place that knows ONNX Runtime: sessions, the runner and its caches."""
