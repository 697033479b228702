"""LINE's process: pushes come in over loopback, taken messages are on disk before their answer goes out.

`python -m tests.stand_ins.line.server --ledger FILE --token TOKEN` prints its port and serves until it is killed or,
with `--with-parent`, until its standard input ends.
"""

import argparse
import asyncio
import os
import re
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import msgspec
from aiohttp import web
from msgspec.structs import replace

from noroshi.domain.instants import Instant, plus
from tests.stand_ins.ledger_provider.server import GroupedFile
from tests.stand_ins.line import conduct as rules
from tests.stand_ins.line.conduct import GOOD, Asked, Conduct, Pushed

KEYS_KEPT = timedelta(hours=24)
LARGEST_BODY = 2_000_000
MOST_MESSAGES = 5
LONGEST_TEXT = 5_000

_USER = re.compile(r"[UCR][0-9a-f]{32}")


class RefusedError(Exception):
    def __init__(self, status: int, message: str, *details: dict[str, str], **headers: str) -> None:
        super().__init__(message)
        self.status = status
        self.body: dict[str, Any] = {"message": message} | ({"details": list(details)} if details else {})
        self.headers = headers


class Line:
    """The retry keys it knows are those of its ledger, so they outlast a restart."""

    def __init__(self, ledger: Path, token: str) -> None:
        self._file = GroupedFile(ledger)
        self._asked = asked_path(ledger).open("ab", buffering=0)
        self._token = token
        self._conduct = GOOD
        self._pushed = read_pushed(ledger)
        self._by_key = {one.retry_key: one for one in self._pushed if one.retry_key}
        self._being_taken: dict[str, asyncio.Event] = {}
        self._open = 0
        self._ended = asyncio.Condition()

    def app(self) -> web.Application:
        app = web.Application(client_max_size=LARGEST_BODY * 2)
        app.router.add_post(rules.PUSH, self.push)
        app.router.add_get(rules.QUOTA, self.quota)
        app.router.add_get(rules.CONSUMPTION, self.consumption)
        app.router.add_put(rules.BEHAVE, self.behave)
        app.router.add_get(rules.ALONE, self.await_alone)
        return app

    async def push(self, request: web.Request) -> web.StreamResponse:
        self._open += 1
        try:
            return await self._push(request)
        finally:
            self._open -= 1
            async with self._ended:
                self._ended.notify_all()

    async def _push(self, request: web.Request) -> web.StreamResponse:
        request_id, key = str(uuid4()), request.headers.get("X-Line-Retry-Key")
        raw = await request.read()
        to, conduct = _addressee(raw), GOOD
        try:
            self._admit(request)
            conduct = self._conduct_towards(to)
            await asyncio.sleep(conduct.delay)
            answer = await self._answer(conduct, request_id, key, raw)
        except RefusedError as refused:
            answer = _json(refused.status, refused.body, refused.headers)
        if conduct.is_hanging or conduct.is_dropping:
            self._note(Asked(self._now(), key, to, None))
            return await _fall_silent(request, conduct)
        answer.headers["X-Line-Request-Id"] = request_id
        self._note(Asked(self._now(), key, to, answer.status))
        return answer

    async def _answer(self, conduct: Conduct, request_id: str, key: str | None, raw: bytes) -> web.Response:
        if conduct.is_good or conduct.is_taking:
            pushed = await self._take(request_id, key, raw)
            if conduct.is_good:
                return _json(200, self._told(pushed))
        raise RefusedError(conduct.status, conduct.message, *conduct.details)

    async def quota(self, request: web.Request) -> web.StreamResponse:
        self._admit(request)
        monthly = self._conduct.monthly
        return _json(200, {"type": "none"} if monthly is None else {"type": "limited", "value": monthly})

    async def consumption(self, request: web.Request) -> web.StreamResponse:
        self._admit(request)
        return _json(200, {"totalUsage": len(self._pushed)})

    async def behave(self, request: web.Request) -> web.StreamResponse:
        self._conduct = msgspec.json.decode(await request.read(), type=Conduct)
        return _json(200, {})

    async def await_alone(self, _request: web.Request) -> web.StreamResponse:
        """Answered once no push is under way."""
        async with self._ended:
            await self._ended.wait_for(lambda: self._open == 0)
        return _json(200, {})

    def _admit(self, request: web.Request) -> None:
        if request.headers.get("Authorization") != f"Bearer {self._token}":
            raise RefusedError(401, rules.UNAUTHORISED.message)
        if request.method == "POST" and request.content_type != "application/json":
            raise RefusedError(415, "The media type is not supported")

    def _conduct_towards(self, to: str) -> Conduct:
        conduct = self._conduct
        if not conduct.concerns(to):
            return GOOD
        if conduct.after:
            self._conduct = replace(conduct, after=conduct.after - 1)
            return GOOD
        if conduct.requests is not None:
            left = conduct.requests - 1
            self._conduct = replace(conduct, requests=left) if left > 0 else self._lasting(conduct)
        return conduct

    def _lasting(self, conduct: Conduct) -> Conduct:
        """What is no misbehaviour: the plan and the time."""
        return Conduct(monthly=conduct.monthly, ahead=conduct.ahead)

    async def _take(self, request_id: str, key: str | None, raw: bytes) -> Pushed:
        to, texts = _checked(raw)
        if key is not None:
            _check_key(key)
            while (other := self._being_taken.get(key)) is not None:
                await other.wait()
            self._refuse_known(key)
        if self._conduct.monthly is not None and len(self._pushed) >= self._conduct.monthly:
            raise RefusedError(429, rules.USED_UP)
        pushed = Pushed(self._now(), key, request_id, str(len(self._pushed) + 1), to, texts)
        self._pushed.append(pushed)
        taken = asyncio.Event()
        if key is not None:
            self._by_key[key] = pushed
            self._being_taken[key] = taken
        await self._file.keep([pushed])
        taken.set()
        self._being_taken.pop(key or "", None)
        return pushed

    def _refuse_known(self, key: str) -> None:
        known = self._by_key.get(key)
        if known is not None and plus(known.at, KEYS_KEPT) > self._now():
            refused = RefusedError(409, "The retry key is already accepted")
            refused.headers["x-line-accepted-request-id"] = known.request_id
            refused.body |= self._told(known)
            raise refused

    def _told(self, pushed: Pushed) -> dict[str, Any]:
        return {"sentMessages": [{"id": pushed.message_id, "quoteToken": f"quote-{pushed.message_id}"}]}

    def _now(self) -> Instant:
        return plus(Instant(time.time_ns() // 1000), timedelta(seconds=self._conduct.ahead))

    def _note(self, asked: Asked) -> None:
        self._asked.write(msgspec.json.encode(asked) + b"\n")


def _addressee(raw: bytes) -> str:
    try:
        return str(msgspec.json.decode(raw, type=dict[str, Any]).get("to", ""))
    except msgspec.DecodeError:
        return ""


def _checked(raw: bytes) -> tuple[str, tuple[str, ...]]:
    if len(raw) > LARGEST_BODY:
        raise RefusedError(413, "The request is too large")
    try:
        body = msgspec.json.decode(raw, type=dict[str, Any])
    except msgspec.DecodeError:
        raise RefusedError(400, "The request body could not be parsed as JSON") from None
    to, messages = body.get("to"), body.get("messages")
    faults = [] if isinstance(to, str) and _USER.fullmatch(to) else [_fault("to", "Not a valid user id")]
    if not isinstance(messages, list) or not 1 <= len(messages) <= MOST_MESSAGES:
        faults.append(_fault("messages", "Size must be between 1 and 5"))
        messages = []
    faults += [fault for number, message in enumerate(messages) for fault in _faults_of(number, message)]
    if faults:
        raise RefusedError(400, f"The request body has {len(faults)} error(s)", *faults)
    return str(to), tuple(message["text"] for message in messages)


def _faults_of(number: int, message: Any) -> list[dict[str, str]]:
    if not isinstance(message, dict) or message.get("type") != "text":
        return [_fault(f"messages[{number}].type", "This stand-in takes text only")]
    text = message.get("text")
    if not isinstance(text, str) or not text.strip():
        return [_fault(f"messages[{number}].text", "May not be empty")]
    if len(text.encode("utf-16-le")) // 2 > LONGEST_TEXT:
        return [_fault(f"messages[{number}].text", "Length must be between 0 and 5000")]
    return []


def _fault(name: str, message: str) -> dict[str, str]:
    return {"message": message, "property": name}


def _check_key(key: str) -> None:
    try:
        UUID(key)
    except ValueError:
        raise RefusedError(400, "The X-Line-Retry-Key is not a UUID") from None


async def _fall_silent(request: web.Request, conduct: Conduct) -> web.StreamResponse:
    if conduct.is_hanging:
        while request.transport is not None and not request.transport.is_closing():
            await asyncio.sleep(0.01)
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _json(status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        status=status, body=msgspec.json.encode(body), content_type="application/json", headers=headers or {}
    )


def asked_path(ledger: Path) -> Path:
    """Where every push is noted, beside the ledger."""
    return ledger.with_name(ledger.name + ".asked")


def read_pushed(ledger: Path) -> list[Pushed]:
    whole = ledger.read_bytes().rpartition(b"\n")[0] if ledger.exists() else b""
    return [msgspec.json.decode(line, type=Pushed) for line in whole.splitlines()]


def read_asked(ledger: Path) -> list[Asked]:
    whole = asked_path(ledger).read_bytes().rpartition(b"\n")[0]
    return [msgspec.json.decode(line, type=Asked) for line in whole.splitlines()]


async def serve(ledger: Path, token: str, port: int, *, is_bound_to_parent: bool) -> None:
    runner = web.AppRunner(Line(ledger, token).app(), handle_signals=False)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    if is_bound_to_parent:
        await asyncio.to_thread(sys.stdin.read)
        os._exit(0)
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ledger", type=Path, required=True)
    parser.add_argument("--token", default="")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--with-parent", action="store_true", help="end when standard input ends")
    wanted = parser.parse_args()
    asyncio.run(serve(wanted.ledger, wanted.token, wanted.port, is_bound_to_parent=wanted.with_parent))


if __name__ == "__main__":
    main()
