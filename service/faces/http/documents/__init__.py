"""Documents over HTTP: read in a process of their own, and translated as other calls are."""
