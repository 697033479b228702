"""The yardstick for e-mail: what a product sends without us, with Jinja2, email.message and aiosmtplib.

    python -m bench.mail_peer PORT COUNT CONNECTIONS

The same texts to the same people, the connections kept open; prints the seconds it took and the CPU seconds of them.
"""

import asyncio
import sys
import time
from collections.abc import Iterator
from email.message import EmailMessage
from email.utils import formataddr, formatdate, make_msgid

import aiosmtplib
import uvloop
from jinja2.sandbox import SandboxedEnvironment

from bench.mail_texts import HTML, SENDER, SUBJECT, TEXT


def _messages(count: int) -> Iterator[EmailMessage]:
    plain, rich = SandboxedEnvironment(), SandboxedEnvironment(autoescape=True)
    subject, text, html = plain.from_string(SUBJECT), plain.from_string(TEXT), rich.from_string(HTML)
    for number in range(count):
        seen = {
            "user": {"name": f"Person {number}"},
            "order": f"peer-{number}",
            "total": 4200,
            "items": ["tea", "cake"],
        }
        message = EmailMessage()
        message["Subject"] = subject.render(seen)
        message["From"] = SENDER
        message["To"] = formataddr((f"Person {number}", f"person-{number}@example.com"))
        message["Date"] = formatdate()
        message["Message-ID"] = make_msgid(domain="noroshi.example")
        message.set_content(text.render(seen))
        message.add_alternative(html.render(seen), subtype="html")
        yield message


async def _carry(port: int, messages: Iterator[EmailMessage]) -> None:
    async with aiosmtplib.SMTP(hostname="127.0.0.1", port=port, start_tls=False) as client:
        for message in messages:
            await client.send_message(message)


async def _send(port: int, count: int, connections: int) -> None:
    messages = _messages(count)
    await asyncio.gather(*(_carry(port, messages) for _ in range(connections)))


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    began, used = time.perf_counter(), time.process_time()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_send(*given))
    print(time.perf_counter() - began, time.process_time() - used)
