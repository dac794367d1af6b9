"""Models on disk and in memory: where bundles lie, how one is loaded and proved, and which one answers a call."""
