"""How many calls a pod can take: a real server on loopback, callers beside it, and what follows from the figures."""
