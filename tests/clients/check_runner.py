"""Runs checks of a module beside this one, without our code: `python check_runner.py SECONDS MODULE NAMES SETTINGS`.

Each is a function `check_...`; they run in the order of their names, which commas separate. Settings are JSON, which
the module reads; the outcome of each check is printed as JSON: why it failed, empty if it did not. A check's name is
printed when it has ended.
"""

import faulthandler
import importlib
import json
import os
import sys
import traceback
from collections.abc import Callable


def outcome(name: str, check: Callable[[], None]) -> str:
    """Return why a check failed; empty if it did not."""
    try:
        check()
        return ""
    except BaseException:  # whatever it is, it is told to the test
        return traceback.format_exc()
    finally:
        print(name, file=sys.stderr, flush=True)  # the last one preceded a hang


if __name__ == "__main__":
    faulthandler.dump_traceback_later(float(sys.argv.pop(1)), exit=True)  # shows where it hangs
    name_of_module, names = sys.argv.pop(1), sys.argv.pop(1).split(",")
    module = importlib.import_module(name_of_module)  # it reads the settings
    outcomes = {name: outcome(name, getattr(module, name)) for name in names}
    ours = [name for name in sys.modules if name.split(".")[0] == "service"]
    assert not ours, ours
    print(json.dumps(outcomes), flush=True)
    os._exit(0)  # a failed check may leave threads of its client behind
