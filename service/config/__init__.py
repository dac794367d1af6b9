"""All settings and their sources."""
