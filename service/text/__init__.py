"""Text in and out of token ids. Knows no engine, gRPC, protobuf, Prometheus or asyncio."""
