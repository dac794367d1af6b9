"""Models on disk and in memory: finding bundles, loading and testing them, choosing the model that answers a call."""
