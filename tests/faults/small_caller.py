"""A caller of small texts: `python -m tests.faults.small_caller ADDRESS [API-KEY]`.

It prints a line when its first call is answered; a line on its standard input, or the end of it, stops it, and it
prints its latencies in seconds as JSON. Nothing else of the tests is imported, so that it starts quickly.
"""

import json
import select
import sys
import time

from dragoman_client import Client

_PAUSE_SECONDS = 0.01
_PATIENCE_SECONDS = 120.0

if __name__ == "__main__":
    latencies: list[float] = []
    address, key = (*sys.argv[1:], "")[:2]
    with Client(address, timeout_seconds=_PATIENCE_SECONDS, api_key=key) as client:
        while not (latencies and select.select([sys.stdin], [], [], _PAUSE_SECONDS)[0]):
            began = time.monotonic()
            assert client.translate(["Hello"], "en", "de")[0].text
            latencies.append(time.monotonic() - began)
            if len(latencies) == 1:
                print("ready", flush=True)
    print(json.dumps(latencies), flush=True)
