"""gRPC: servers, interceptors, and a face for each API."""
