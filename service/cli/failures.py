"""What a command's errors mean for its user: an exit code and one line; an error's notes follow it."""

from dragoman_client import ClientError, NoServer, NotSecure, TlsAdvice
from service.bundle.errors import BundleError, one_line
from service.cli.errors import OF_STATUS, CommandError, ExitCode
from service.cli.options import API_KEY, SERVER
from service.process.memory import memory_shortage
from service.process.ports import PortError

# The client's advice on TLS, with the options of this command line.
_TLS_ADVICE = {
    TlsAdvice.TRUST: "name its certificate authority with --tls-ca.",
    TlsAdvice.OMIT_TLS: "connect without --tls.",
    TlsAdvice.USE_TLS: "if it uses TLS, add --tls.",
    TlsAdvice.SHOW_CERTIFICATE: "if it requires a certificate, give one that it trusts with --tls-certificate and "
    "--tls-key.",
}


def failure_of(error: Exception) -> tuple[int, str] | None:
    """Return the exit code and the line to print; `None` for an error that no user can cause."""
    match error:
        case CommandError():
            return error.exit_code, str(error)
        case NoServer():
            return ExitCode.NO_SERVER, f"{error} Start one with 'make serve', or name it with --server or in {SERVER}."
        case NotSecure():
            return ExitCode.NOT_SECURE, f"{error.problem}; {_TLS_ADVICE.get(error.advice, error.advice.value)}"
        case ClientError():
            hint = f" This command reads it from {API_KEY}." if error.code == "UNAUTHENTICATED" else ""
            return OF_STATUS.get(error.code, ExitCode.SOFTWARE), f"{error}{hint}"
        case BundleError():
            return ExitCode.CONFIG, str(error)
        case PortError():
            return ExitCode.PORT, str(error)
    shortage = memory_shortage(error)
    if shortage is None:
        return None
    return ExitCode.CONFIG, f"memory or threads ran out ({one_line(shortage)}); give the process more."
