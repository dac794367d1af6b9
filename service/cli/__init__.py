"""The command line: `dragoman serve`, `config`, `translate`, `detect` and `models`."""
