"""Calls in progress while a server is told to stop, as a process in its network: `python -m tests.image.callers`.

Prints `under way` when all calls are, then, once the server has stopped being ready, one line of JSON.
"""

import json
from concurrent.futures import ThreadPoolExecutor

from dragoman_client import Client, Options
from tests.servers import distinct_texts, eventually, http_get, samples

NUM_CALLS = 8
TEXTS_PER_CALL = 150  # few enough for one request, of which a server that stops answers all
BEAMS = Options(beam_size=4)  # so that the first call takes longer than all need to begin
METRICS = "http://127.0.0.1:9464"


def main() -> None:
    with Client("127.0.0.1:50051") as client, ThreadPoolExecutor(NUM_CALLS) as pool:
        calls = [
            pool.submit(client.translate, distinct_texts(TEXTS_PER_CALL), "en", "de", options=BEAMS)
            for _ in range(NUM_CALLS)
        ]
        eventually(lambda: samples(http_get(f"{METRICS}/metrics")[2], "dragoman_inflight_requests") == [NUM_CALLS])
        print("under way", flush=True)
        eventually(lambda: http_get(f"{METRICS}/readyz")[0] == 503)
        unanswered = sum(not call.done() for call in calls)
        answered = sum(len(call.result(timeout=60)) for call in calls)
    print(json.dumps({"unanswered_when_draining": unanswered, "answered_texts": answered}))


if __name__ == "__main__":
    main()
