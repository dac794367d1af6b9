"""The command line: `dragoman serve`, `config`, `translate`, `detect`, `models` and `key`."""

import os

from service.process.standard_streams import hold_numbers

hold_numbers()  # before gRPC opens its own files

# gRPC's core logs, in its own format, what our errors already contain; it reads this variable on import.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
