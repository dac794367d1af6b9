"""What the command line exits with: BSD sysexits where they fit, click's 2 for usage, 128 + signal as shells do."""

OK = 0
USAGE = 2  # the command line is wrong, or names a language or model that is not served
DATA = 65  # the input is wrong: not UTF-8, or refused by the server
NO_INPUT = 66  # the input file can't be opened
NO_SERVER = 69  # nobody answers at the server's address, or the server is not ready
SOFTWARE = 70  # an internal error, here or in the server
PORT = 71  # a port can't be listened on
CANT_CREATE = 73  # the output file can't be created
IO_ERROR = 74  # reading or writing failed half way
TRY_LATER = 75  # the server stayed overloaded, or the call's time ran out
NOT_SECURE = 76  # no TLS connection: certificates do not fit, or only one side wants it
NO_PERMISSION = 77  # the server asks for an API key that is good
# A bundle is missing, damaged or fails its self-test; memory does not suffice; a setting, or a file it names, makes no
# sense.
CONFIG = 78
INTERRUPTED = 130  # Ctrl-C
BROKEN_PIPE = 141  # the reader of the output went away

# gRPC status of a failed call -> exit code; every other status is the server's own fault.
OF_STATUS = {
    "INVALID_ARGUMENT": DATA,
    "NOT_FOUND": USAGE,
    "UNAUTHENTICATED": NO_PERMISSION,
    "UNAVAILABLE": NO_SERVER,
    "RESOURCE_EXHAUSTED": TRY_LATER,
    "DEADLINE_EXCEEDED": TRY_LATER,
    "CANCELLED": TRY_LATER,
}
