"""Opening a session: settings in; one that is greeted, encrypted and authenticated, or why there is none, out."""

import asyncio
import socket
from base64 import b64encode
from ssl import SSLCertVerificationError, SSLContext, SSLError, create_default_context

from noroshi.domain.outcomes import Misconfigured, Outcome, Retry, Scope
from noroshi.flow.send.email.smtp.outcomes import ReplyJudge, Stage
from noroshi.flow.send.email.smtp.replies import Reply
from noroshi.flow.send.email.smtp.session import Session
from noroshi.flow.send.email.smtp.settings import Relay, Security, SmtpSettings, is_loopback
from noroshi.flow.send.email.smtp.wire import BrokenError, Wire

Abilities = dict[str, str]
"""What the relay says it can do: the keyword of each line of its EHLO reply, and what stands behind it."""

_GREETED = 220
_SEND_MORE = 334
_AUTHENTICATED = 235
_COMMAND_UNKNOWN = frozenset({500, 502, 504})


class RefusedError(Exception):
    """No session could be opened; `outcome` is what that means for every letter."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(type(outcome).__name__)
        self.outcome = outcome


class Opener:
    """Opens sessions with one relay. No answer of a relay makes it speak in clear what was to be encrypted."""

    def __init__(self, settings: SmtpSettings, judge: ReplyJudge) -> None:
        self._relay: Relay = settings.relay
        self._sender = settings.sender.address.text.encode("ascii")
        self._helo = settings.helo
        self._judge = judge
        security = self._relay.security
        self._tls_at_once = _context(settings) if security is Security.AT_ONCE else None
        self._tls_later = _context(settings) if security is Security.STARTTLS else None

    async def open(self) -> Session:
        wire: Wire | None = None
        try:
            wire = await self._dial()
            return await self._introduce(wire)
        except BaseException as error:
            if wire is not None:
                wire.abort()
            if (outcome := _meaning(error)) is not None:
                raise RefusedError(outcome) from error
            raise

    async def _dial(self) -> Wire:
        relay, context = self._relay, self._tls_at_once
        name = relay.host if context is not None else None
        _, wire = await asyncio.get_running_loop().create_connection(
            Wire, relay.host, relay.port, ssl=context, server_hostname=name
        )
        return wire

    async def _introduce(self, wire: Wire) -> Session:
        self._demand(await wire.reply(), _GREETED)
        abilities = await self._say_hello(wire)
        if self._tls_later is not None:
            await self._begin_tls(wire, self._tls_later, abilities)
            abilities = await self._say_hello(wire)  # what was said before TLS is forgotten (RFC 3207 4.2)
        if self._relay.user:
            await self._authenticate(wire, abilities)
        return Session(wire, self._judge, self._sender, frozenset(abilities), _size_limit(abilities))

    async def _say_hello(self, wire: Wire) -> Abilities:
        name = (self._helo or _own_name(wire)).encode("ascii")
        reply = await wire.ask(b"EHLO %b\r\n" % name)
        if reply.code in _COMMAND_UNKNOWN:
            self._demand(await wire.ask(b"HELO %b\r\n" % name))
            return {}
        self._demand(reply)
        lines = (line.partition(" ") for line in reply.lines[1:])
        return {keyword.upper(): behind.upper() for keyword, _, behind in lines}

    async def _begin_tls(self, wire: Wire, context: SSLContext, abilities: Abilities) -> None:
        if "STARTTLS" not in abilities:
            raise RefusedError(Misconfigured("STARTTLS_MISSING", "the relay does not offer STARTTLS: nothing is sent"))
        self._demand(await wire.ask(b"STARTTLS\r\n"), _GREETED)
        if not wire.is_quiet:
            raise RefusedError(Misconfigured("STARTTLS_INJECTION", "somebody spoke for the relay before TLS began"))
        await wire.begin_tls(context, self._relay.host)

    async def _authenticate(self, wire: Wire, abilities: Abilities) -> None:
        relay = self._relay
        if relay.security is Security.NONE and not is_loopback(wire.peer_address):
            raise RefusedError(Misconfigured("AUTH_IN_CLEAR", "the host is not this machine: the password is not sent"))
        offered = abilities.get("AUTH", "").split()
        user, password = relay.user.encode(), relay.password.encode()
        if "PLAIN" in offered:
            reply = await wire.ask(b"AUTH PLAIN %b\r\n" % b64encode(b"\0%b\0%b" % (user, password)))
        elif "LOGIN" in offered:
            reply = await wire.ask(b"AUTH LOGIN\r\n")
            for secret in (user, password):
                self._demand(reply, _SEND_MORE)
                reply = await wire.ask(b64encode(secret) + b"\r\n")
        else:
            raise RefusedError(Misconfigured("AUTH_MISSING", "the relay offers neither AUTH PLAIN nor AUTH LOGIN"))
        self._demand(reply, _AUTHENTICATED)

    def _demand(self, reply: Reply, code: int | None = None) -> None:
        if reply.code == code or (code is None and reply.is_positive):
            return
        if reply.code < 400:
            raise BrokenError("an answer to another question")
        raise RefusedError(self._judge.refusal(reply, Stage.SESSION))


def _context(settings: SmtpSettings) -> SSLContext:
    """Certificate and name are checked, TLS 1.2 is the least: the defaults, which cannot be switched off."""
    return create_default_context(cafile=None if settings.ca is None else str(settings.ca))


def _meaning(error: BaseException) -> Outcome | None:
    """Nothing was sent, whatever went wrong. The class of the error alone: its text may quote anything."""
    name = type(error).__name__
    match error:
        case SSLCertVerificationError():
            return Misconfigured("TLS_CERTIFICATE", f"the relay's certificate is not valid: {error.verify_message}")
        case SSLError():
            return Retry("TLS_FAILED", name, scope=Scope.ACCOUNT)
        case OSError():
            return Retry("CONNECTION_FAILED", name, scope=Scope.ACCOUNT)
        case BrokenError():
            return Retry("CONNECTION_LOST", str(error), scope=Scope.ACCOUNT)
        case _:
            return None


def _own_name(wire: Wire) -> str:
    """A full host name, else an address literal (RFC 5321 4.1.3)."""
    name = socket.gethostname()
    if "." in name and name.isascii() and name.replace(".", "").replace("-", "").isalnum():
        return name
    address = wire.host_address
    return f"[IPv6:{address}]" if ":" in address else f"[{address}]"


def _size_limit(abilities: Abilities) -> int | None:
    """The longest message the relay says it takes (RFC 1870); 0 and nothing mean that it does not say."""
    text = abilities.get("SIZE", "")
    return int(text) or None if text.isdecimal() else None
