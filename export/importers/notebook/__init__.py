"""State dicts of Transformers that were written by hand after the five notebooks that docs/models.md lists."""
