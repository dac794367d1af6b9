"""Imports the students of Mozilla, Bergamot and others that Marian trains: small models whose decoder has no cache."""
