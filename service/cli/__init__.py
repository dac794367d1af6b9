"""The command line: `dragoman serve`, `translate`, `detect` and `models`."""
