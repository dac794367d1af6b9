"""Fused graphs: each of an int8 bundle's two graphs as one node, which the operators in `kernels/` run."""
