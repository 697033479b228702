"""A stub of `noroshi serve` and `keys create`: as much of their interfaces as the machinery's own tests need.

STUB_DROPS=n: of every n new batches one is kept and its answer dropped. STUB_FAILS=n: of every n requests one is
answered 503. STUB_BROKEN=1: it ends at once. STUB_STUBBORN=1: it is never ready. STUB_FORGETS=1 keeps nothing over
a restart. STUB_HAS_CHILD=1: it has a child that outlives it. A template called `unknown` is refused.
"""

import argparse
import os
import subprocess
import sys
import uuid
from pathlib import Path

import msgspec
from aiohttp import web


class StubProduct:
    def __init__(self, data: Path) -> None:
        self._kept_path = data / "kept"
        self._kept: dict[str, str] = {}
        self._drops = int(os.environ.get("STUB_DROPS", "0"))
        self._fails = int(os.environ.get("STUB_FAILS", "0"))
        self._requests = 0
        if self._kept_path.exists() and "STUB_FORGETS" not in os.environ:
            self._kept = dict(line.split(" ") for line in self._kept_path.read_text().splitlines())

    async def readyz(self, _: web.Request) -> web.Response:
        return web.Response(status=503 if "STUB_STUBBORN" in os.environ else 200)

    async def accept(self, request: web.Request) -> web.StreamResponse:
        body = msgspec.json.decode(await request.read())
        self._requests += 1
        if request.headers["Authorization"] != "Bearer nrs_stub" or body["template_id"] == "unknown":
            return _answer(422, {"code": "unknown_template"})
        if self._fails and self._requests % self._fails == 0:
            return web.Response(status=503, headers={"Retry-After": "0"})
        key = body["idempotency_key"]
        if key in self._kept:
            return _answer(409, {"code": "idempotency_replay", "batch_id": self._kept[key]})
        self._keep(key)
        if self._drops and len(self._kept) % self._drops == 0 and request.transport is not None:
            request.transport.abort()
        return _answer(202, {"batch_id": self._kept[key]})

    def _keep(self, key: str) -> None:
        self._kept[key] = str(uuid.uuid4())
        with self._kept_path.open("a") as file:
            file.write(f"{key} {self._kept[key]}\n")


def _answer(status: int, fields: dict[str, str]) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(fields), content_type="application/json")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="+")
    for option in ("--host", "--port", "--data", "--name", "--scopes"):
        parser.add_argument(option)
    wanted = parser.parse_args()
    if wanted.words == ["keys", "create"]:
        print("nrs_stub")
        return
    print("stub starts", flush=True)
    if "STUB_BROKEN" in os.environ:
        sys.exit("broken on purpose")
    if "STUB_HAS_CHILD" in os.environ:
        child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
        (Path(wanted.data) / "child").write_text(str(child.pid))
    stub = StubProduct(Path(wanted.data))
    app = web.Application()
    app.add_routes([web.get("/readyz", stub.readyz), web.post("/api/v1/notifications", stub.accept)])
    web.run_app(app, host=wanted.host, port=int(wanted.port), print=None)


if __name__ == "__main__":
    main()
