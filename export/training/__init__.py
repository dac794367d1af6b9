"""Training of Dragoman's own models: `python -m export train RECIPE`."""
