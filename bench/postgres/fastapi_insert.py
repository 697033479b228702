"""The peer of B1: FastAPI on the same web server, one INSERT a request, durable before the answer.

python -m bench.postgres.fastapi_insert PORT URL
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import asyncpg
import uvicorn
import uvloop
from fastapi import FastAPI, Header
from pydantic import BaseModel, Field

_CONNECTIONS = 16


class Send(BaseModel):
    user_ids: list[str] = Field(min_length=1, max_length=10_000)
    template_id: str
    channels: list[str]
    priority: str
    category: str
    idempotency_key: str
    data: dict[str, Any]


def build(url: str) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with asyncpg.create_pool(url, min_size=_CONNECTIONS, max_size=_CONNECTIONS) as pool:
            await pool.execute(
                "CREATE TABLE IF NOT EXISTS sends ("
                "id uuid PRIMARY KEY, idempotency_key text UNIQUE, body text NOT NULL)"
            )
            app.state.pool = pool
            yield

    app = FastAPI(lifespan=lifespan)

    @app.get("/readyz")
    async def ready() -> dict[str, str]:
        return {"status": "ready"}

    @app.post("/api/v1/notifications", status_code=202)
    async def send(asked: Send, authorization: str = Header()) -> dict[str, Any]:
        assert authorization
        this = uuid4()
        await app.state.pool.execute(
            "INSERT INTO sends VALUES ($1, $2, $3) ON CONFLICT (idempotency_key) DO NOTHING",
            this,
            asked.idempotency_key,
            asked.model_dump_json(),
        )
        count = len(asked.user_ids)
        return {"batch_id": str(this), "total_recipients": count, "accepted": count, "rejected": 0}

    return app


async def _serve(port: int, url: str) -> None:
    config = uvicorn.Config(build(url), port=port, http="httptools", log_config=None, access_log=False)
    await uvicorn.Server(config).serve()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(int(sys.argv[1]), sys.argv[2]))
