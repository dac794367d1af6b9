"""The command line: `dragoman serve`, `config`, `translate`, `detect`, `models` and `key`."""

import os

from service.process.standard_streams import hold_numbers

hold_numbers()  # before gRPC opens files of its own

# gRPC's core logs, in a form of its own, what our errors say already; it looks at this when it is imported.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
