"""The command line: `dragoman serve`, `translate` and `models`."""
