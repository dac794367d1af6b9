"""Nothing that the server reads can run code: no pickles and no evaluated text, in our sources or in what they load."""

import ast
from pathlib import Path

import pytest

from tests.programs import output_of
from tests.servers import REPOSITORY

MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "torch"}
FUNCTIONS = {"eval", "exec", "compile", "__import__"}
SOURCES = sorted(path for path in (REPOSITORY / "service").rglob("*.py") if "pb" not in path.parts)


def unsafe(source: str) -> list[str]:
    """Return what in a module's source could run code that it reads."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in MODULES]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "yaml":
            # Parsing gives events; all else that loads, or a loader that is not safe, may build objects.
            if "load" in node.attr.lower() and node.attr not in {"SafeLoader", "CSafeLoader"}:
                found.append(f"yaml.{node.attr}")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in {*MODULES, "yaml"}:
            found.append(str(node.module))
        elif isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            attribute = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            allows = given.get("allow_pickle")
            if name in FUNCTIONS or attribute == "read_pickle":
                found.append(name or attribute)
            elif allows is not None and not (isinstance(allows, ast.Constant) and allows.value is False):
                found.append("allow_pickle")
    return found


def test_no_module_of_the_service_does() -> None:
    assert len(SOURCES) > 100
    assert {path: found for path in SOURCES if (found := unsafe(path.read_text()))} == {}


@pytest.mark.parametrize(
    "planted",
    [
        *(
            "import pickle",
            "from yaml import load",
            "yaml.load(text, yaml.SafeLoader)",
            "yaml.parse(text, yaml.Loader)",
            "def f():\n    import marshal as m",
            "eval(text)",
        ),
        *("numpy.load(path, allow_pickle=True)", "numpy.load(path, allow_pickle=mode)"),
    ],
)
def test_planted_faults_are_found(planted: str) -> None:
    assert unsafe(planted)


# Audit hooks see every unpickling, also by C code and in libraries.
_SERVES = """
import sys

found = []
sys.addaudithook(lambda event, arguments: found.append((event, arguments)) if event.startswith("pickle.") else None)

import asyncio
from pathlib import Path

from service.config.server_config import ServerConfig
from service.server.server import Server


async def serve():
    server = Server(ServerConfig(models=Path(sys.argv[1]), port=0, metrics_port=0, admin_port=0, num_threads=1))
    await server.open()
    await server.load()
    await server.translator.detect(["Where is the train station?"], float("inf"))
    await server.close()


asyncio.run(serve())
print(*found)
import pickle
pickle.loads(b"cos\\nsep\\n.")  # a planted fault
print(*found)
"""


def test_nothing_is_unpickled_while_a_server_starts_and_detects(tiny_models: Path) -> None:
    served, planted = output_of(_SERVES, tiny_models).splitlines()
    assert served == ""
    assert "pickle.find_class" in planted
