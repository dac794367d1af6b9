"""Bundles from a folder or an object store to a folder, every checksum verified."""
