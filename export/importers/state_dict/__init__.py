"""Bare state dicts of Transformers in PyTorch: weights by names, and the files that a user gives beside them."""
