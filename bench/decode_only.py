"""B1's limit: the same web server and body with a route that only decodes; nothing is kept.

python -m bench.decode_only PORT
"""

import sys
from typing import Any

import msgspec
import uvicorn
from starlette.types import Receive, Scope, Send

from noroshi.domain.requests import AcceptedAnswer, NotificationRequest

_decode = msgspec.json.Decoder(NotificationRequest).decode
_encode = msgspec.json.Encoder().encode
_ID = "01900000-0000-7000-8000-000000000000"


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    answer = await _decoded(receive) if scope["method"] == "POST" else b"{}"
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 202, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


async def _decoded(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    request = _decode(body)
    count = len(request.user_ids)
    return _encode(AcceptedAnswer(_ID, "queued", count, count, 0, 0, {}, []))


def uvicorn_settings(application: Any, port: int) -> uvicorn.Config:
    """What `noroshi serve` gives uvicorn."""
    return uvicorn.Config(
        application,
        host="127.0.0.1",
        port=port,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=2048,
        timeout_keep_alive=75,
    )


if __name__ == "__main__":
    uvicorn.Server(uvicorn_settings(app, int(sys.argv[1]))).run()
