"""gRPC on the outside, the domain on the inside: servicers, interceptors, status codes, health, reflection."""
