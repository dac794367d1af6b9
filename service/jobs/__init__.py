"""Documents translated as a whole: read in a process of their own, translated as other calls are, and kept."""
