"""Continuous batching of sequences over two ONNX graphs. Knows no gRPC, protobuf, Prometheus or asyncio."""
