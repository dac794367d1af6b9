"""Bundles from a folder, an object store or a registry to a folder, every checksum verified."""
