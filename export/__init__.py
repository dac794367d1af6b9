"""Dragoman's exporter: trained checkpoints to verified bundles, and the recipe that trains the default model."""
