"""Dragoman's server: translations over gRPC from bundles, by continuous batching on ONNX Runtime."""

__version__ = "0.1.0"
