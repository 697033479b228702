"""The server's keys: the data folder or one secret in; master keys, pepper and blind-index key out."""

import binascii
import os
import stat
from base64 import b64decode, urlsafe_b64encode
from pathlib import Path

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from msgspec import Struct

KEY_BYTES = 32
FILE_NAME = "secrets"

_DERIVED_MASTER = 0
_FIRST_MASTER = 1
_HEAD = """\
# The keys of this Noroshi. Keep them secret and keep a copy apart from the store:
# without them no address in it can be read and no API key is valid.
"""


class SecretsError(Exception):
    """The keys cannot be used; the text says what to do and never shows a key."""


class Secrets(Struct, frozen=True):
    """`masters` by number: the highest closes, all open. `pepper` is for API keys, `blind_index` for finding
    addresses without opening them."""

    masters: dict[int, bytes]
    pepper: bytes
    blind_index: bytes

    def __repr__(self) -> str:
        return "Secrets(...)"


def load_secrets(directory: Path, secret_key: str | None) -> Secrets:
    """From `secret_key` if there is one, else from DIR/secrets, which is made on the first start."""
    if secret_key is not None:
        return derive_secrets(secret_key)
    path = directory / FILE_NAME
    if not path.exists():
        if (directory / "noroshi.db").exists():
            raise SecretsError(
                f"{path} is missing, but the store beside it was made with keys: put the file back, "
                "or set NOROSHI_SECRET_KEY if the store was made with that"
            )
        _create(path)
    return _read(path)


def derive_secrets(secret_key: str) -> Secrets:
    """All keys from one secret (base64url, 32 bytes), each for its own purpose."""
    root = _decoded("NOROSHI_SECRET_KEY", secret_key)
    return Secrets(
        masters={_DERIVED_MASTER: _derived(root, "master")},
        pepper=_derived(root, "pepper"),
        blind_index=_derived(root, "blind index"),
    )


def _derived(root: bytes, purpose: str) -> bytes:
    return HKDF(SHA256(), KEY_BYTES, salt=None, info=f"noroshi {purpose} v1".encode()).derive(root)


def _create(path: Path) -> None:
    """All or nothing, on the disk before anyone uses it; if another process was first, its file stands."""
    names = (f"master.{_FIRST_MASTER}", "pepper", "blind_index")
    lines = "".join(f"{name} = {urlsafe_b64encode(os.urandom(KEY_BYTES)).decode()}\n" for name in names)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{FILE_NAME}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(_HEAD + lines)
        file.flush()
        os.fsync(file.fileno())
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _read(path: Path) -> Secrets:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise SecretsError(f"{path} can be read by others (mode {mode:04o}): chmod 600 {path}")
    found: dict[str, bytes] = {}
    for line in path.read_text(encoding="ascii", errors="replace").splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, value = (part.strip() for part in line.partition("="))
            found[name] = _decoded(f"{name} in {path}", value)
    masters = {_master_number(name, path): key for name, key in found.items() if name.startswith("master.")}
    missing = {"pepper", "blind_index"} - found.keys() | (set() if masters else {f"master.{_FIRST_MASTER}"})
    if missing:
        raise SecretsError(f"{path} lacks {', '.join(sorted(missing))}: put the whole file back from its copy")
    return Secrets(masters, found["pepper"], found["blind_index"])


def _master_number(name: str, path: Path) -> int:
    number = name.removeprefix("master.")
    if not number.isdecimal() or not _FIRST_MASTER <= int(number) <= 255:
        raise SecretsError(f"{path}: master keys are numbered master.1 to master.255")
    return int(number)


def _decoded(name: str, text: str) -> bytes:
    try:
        key = b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise SecretsError(f"{name} must be {KEY_BYTES} bytes as base64url (43 characters)")
    return key
