"""What surrounds a store: settings, the data folder and its keys, the disk, and the providers."""

import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from noroshi.bootstrap.opening import roll_of
from noroshi.care.findings import Finding, fine, problem, warning
from noroshi.domain.channels import CHANNELS
from noroshi.machine.secrets import FILE_NAME, SecretsError, load_secrets
from noroshi.settings import Settings

_LOOPBACK = {"127.0.0.1", "::1", "localhost"}
_ROOM_NEEDED = 1_000_000_000
_ROOM_WANTED = 0.1


def examine_surroundings(settings: Settings) -> Iterator[Finding]:
    yield from _examine_settings(settings)
    yield from _examine_keys(settings)
    yield _examine_disk(settings.data)
    yield from _examine_channels(settings)


def _examine_settings(settings: Settings) -> Iterator[Finding]:
    odd = False
    if settings.unsafe:
        odd = True
        yield problem("NOROSHI_UNSAFE", "on: what was accepted may be lost", "leave it out in production")
    if settings.crash_at is not None:
        odd = True
        yield problem("NOROSHI_CRASH_AT", "the server ends itself on purpose", "leave it out")
    if settings.host not in _LOOPBACK and settings.public_url.startswith("http://"):
        odd = True
        yield warning(
            "NOROSHI_PUBLIC_URL",
            "people beyond this machine are sent to http://",
            "put a proxy with TLS before it and set NOROSHI_PUBLIC_URL=https://...",
        )
    if settings.is_on_postgres and settings.secret_key is None and not settings.data.is_absolute():
        odd = True
        yield warning(
            "NOROSHI_DATA",
            "a relative folder: another process may look for the keys elsewhere",
            "name it by its whole path, or set NOROSHI_SECRET_KEY",
        )
    if not odd:
        yield fine("settings", "nothing unsafe")


def _examine_keys(settings: Settings) -> Iterator[Finding]:
    if settings.data.exists():
        yield _examine_mode(settings.data)
    if settings.secret_key is not None:
        yield fine("keys", "from NOROSHI_SECRET_KEY")
        return
    path = settings.data / FILE_NAME
    if not path.exists():
        yield warning("keys", f"{path} is not there yet", "the first start makes it; an older store needs its own")
        return
    try:
        load_secrets(settings.data, None)
    except SecretsError as error:
        yield problem("keys", str(error), "see above")
    else:
        yield fine("keys", f"{path}, readable for its owner only; keep a copy apart from the store")


def _examine_mode(folder: Path) -> Finding:
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o022:
        return problem("data folder", f"{folder} can be written by others ({mode:04o})", f"chmod 700 {folder}")
    if mode & 0o055:
        return warning("data folder", f"{folder} can be read by others ({mode:04o})", f"chmod 700 {folder}")
    return fine("data folder", f"{folder} ({mode:04o})")


def _examine_disk(folder: Path) -> Finding:
    there = next(place for place in (folder, *folder.resolve().parents) if place.exists())
    usage = shutil.disk_usage(there)
    text = f"{usage.free / 1e9:.1f} GB of {usage.total / 1e9:.1f} GB free"
    if usage.free < _ROOM_NEEDED:
        return problem("disk", text, "make room: below 64 MB nothing more is accepted")
    if usage.free < usage.total * _ROOM_WANTED:
        return warning("disk", text, "make room soon")
    return fine("disk", text)


def _examine_channels(settings: Settings) -> Iterator[Finding]:
    roll = roll_of(settings)
    caught = sorted(channel for channel, account in roll.served.items() if account.startswith("catcher"))
    if caught:
        yield warning("channels", f"the catcher stands in for {', '.join(caught)}: nobody gets these", "fit for tests")
    served = sorted(set(roll.served) - set(caught))
    missing = sorted(set(CHANNELS) - set(roll.served))
    if served:
        yield fine("channels", f"{', '.join(served)} have a provider")
    if missing:
        yield warning("channels", f"{', '.join(missing)} have no provider", "requests for them are refused")
