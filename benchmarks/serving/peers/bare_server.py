"""uvicorn without framework and without work: the most that server and load generator reach.

python -m benchmarks.serving.peers.bare_server PORT
"""

import sys
from typing import Any

import uvicorn

ANSWER = b'{"mask": "' + b"A" * 1000 + b'"}'
START = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-length", str(len(ANSWER)).encode("ascii"))],
}


async def answer(scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG001
    """Reads the body and answers a constant of an answer's size."""
    while (await receive()).get("more_body"):
        pass
    await send(START)
    await send({"type": "http.response.body", "body": ANSWER})


if __name__ == "__main__":
    uvicorn.run(
        answer, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False, lifespan="off"
    )
