"""Google Cloud Translation over HTTP: v3, as its .proto maps it, and v2."""
