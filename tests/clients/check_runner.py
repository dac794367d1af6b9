"""Runs the checks of a module beside this one: `python check_runner.py MODULE SETTINGS`, without our code.

Every function `check_...` is one check. Settings are JSON, which the module reads; the outcome of each check is printed
as JSON: why it failed, empty if it did not.
"""

import importlib
import json
import sys
import traceback
from collections.abc import Callable


def outcome(check: Callable[[], None]) -> str:
    """Return why a check failed; empty if it did not."""
    try:
        check()
    except Exception:  # whatever it is, it is told to the test
        return traceback.format_exc()
    return ""


if __name__ == "__main__":
    module = importlib.import_module(sys.argv.pop(1))
    checks = {name: each for name, each in vars(module).items() if name.startswith("check_")}
    outcomes = {name: outcome(check) for name, check in checks.items()}
    ours = [name for name in sys.modules if name.split(".")[0] == "service"]
    assert not ours, ours
    print(json.dumps(outcomes))
