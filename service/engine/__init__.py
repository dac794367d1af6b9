"""Continuous batching of sequences over two ONNX graphs. Independent of gRPC, protobuf, Prometheus and asyncio."""
