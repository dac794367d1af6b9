"""Requests, results, calls and errors. Imports no other package of this project."""
