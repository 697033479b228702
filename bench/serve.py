"""The product as a process, for a tree that has no `noroshi serve` yet: the environment in, a server until SIGTERM out.

python -m bench.serve PORT
"""

import asyncio
import os
import sys

import uvicorn
import uvloop

from bench.decode_only import uvicorn_settings
from noroshi.bootstrap import open_noroshi
from noroshi.entrypoints.api.app import build_app
from noroshi.settings import read_settings


async def serve(port: int) -> None:
    noroshi = open_noroshi(read_settings(os.environ), is_dev=False, on_broken=lambda: os._exit(3))
    await noroshi.start()
    try:
        await uvicorn.Server(uvicorn_settings(build_app(noroshi), port)).serve()
    finally:
        await noroshi.stop()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(int(sys.argv[1])))
