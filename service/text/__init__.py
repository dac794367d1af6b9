"""Conversion between text and token ids. Independent of the engine, gRPC, protobuf, Prometheus and asyncio."""
