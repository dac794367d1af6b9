"""The only package that uses ONNX Runtime: sessions, the runner and its caches."""
