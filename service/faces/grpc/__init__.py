"""gRPC: the server, what every call passes, and a face for each API."""
