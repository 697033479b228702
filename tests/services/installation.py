"""Where the programs of PostgreSQL come from: PATH, Debian's folders, apt, a wheel; or one line that says why not."""

import os
import platform
import pwd
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.services.runs import ROOT

OLDEST = 14
WHEEL = ROOT / "requirements" / "services.lock"

_DEBIAN = Path("/usr/lib/postgresql")
_NO_CLUSTER = Path("/etc/postgresql-common/createcluster.d/noroshi-tests.conf")
_IN_WHEEL = "*/pginstall*/bin"
_APT_WITHIN = 600.0
_WHEEL_WITHIN = 300.0


class ServiceMissingError(RuntimeError):
    """This machine has no such server; the text says why."""


class Account(NamedTuple):
    """Whose processes they are; None for our own."""

    uid: int | None = None
    gid: int | None = None

    @property
    def groups(self) -> list[int] | None:
        return None if self.uid is None else []


class Installation(NamedTuple):
    binaries: Path
    account: Account

    def run(self, program: str, *words: str | Path, cwd: Path = Path("/")) -> str:
        """What a program of PostgreSQL prints, run as the server's own account."""
        return run_as(self.account, [str(self.binaries / program), *map(str, words)], cwd=cwd)


def run_as(account: Account, words: list[str], *, cwd: Path = Path("/"), within: float = 60) -> str:
    done = subprocess.run(
        words,
        cwd=cwd,
        env=plain_environment(),
        user=account.uid,
        group=account.gid,
        extra_groups=account.groups,
        umask=0o022,
        capture_output=True,
        text=True,
        timeout=within,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{Path(words[0]).name} ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def plain_environment(**more: str) -> Mapping[str, str]:
    """Ours without what would speak to PostgreSQL's programs: PGDATA, PGPORT, locales that are not installed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    return {**kept, "LC_ALL": "C", **more}


def find_postgres() -> Installation:
    """The first that works; apt and the wheel are asked only if nothing is installed."""
    reasons = []
    for source in (_installed, _from_apt, _from_wheel):
        try:
            return source()
        except (ServiceMissingError, RuntimeError, OSError, subprocess.TimeoutExpired) as why:
            reasons.append(in_one_line(why))
    raise ServiceMissingError("; ".join(reasons))


def in_one_line(why: Exception) -> str:
    """Programs warn first and say at the very end what went wrong."""
    first, *more = str(why).splitlines()
    return f"{first.partition(': ')[0]}: {more[-1]}" if more else first


def server_account() -> Account:
    """PostgreSQL refuses to run as root."""
    if os.geteuid():
        return Account()
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(found.pw_uid, found.pw_gid)
    raise ServiceMissingError("postgres refuses root, and there is neither a user postgres nor nobody")


def _installed() -> Installation:
    refused = []
    for folder in _candidates():
        try:
            return _tried(folder)
        except (ServiceMissingError, RuntimeError, OSError) as why:
            refused.append(f"{folder}: {why}")
    raise ServiceMissingError("; ".join(refused) or f"no server on PATH or in {_DEBIAN}")


def _candidates() -> Iterator[Path]:
    on_path = shutil.which("postgres")
    if on_path:
        yield Path(on_path).resolve().parent
    yield from sorted(_DEBIAN.glob("*/bin"), key=lambda folder: int(re.sub(r"\D", "", folder.parent.name) or 0))[::-1]


def _tried(folder: Path) -> Installation:
    """Its programs must start as the server's account, which may not look into every folder that we may."""
    found = Installation(folder, server_account())
    found.run("initdb", "--version")
    version = re.search(r"\d+", found.run("postgres", "--version"))
    if version is None or int(version[0]) < OLDEST:
        raise ServiceMissingError(f"older than PostgreSQL {OLDEST}")
    return found


def _from_apt() -> Installation:
    if os.geteuid() or not shutil.which("apt-get"):
        raise ServiceMissingError("apt needs root" if os.geteuid() else "no apt")
    print("postgres: none is installed; asking apt for one", file=sys.stderr)
    is_ours = not _NO_CLUSTER.exists()
    _NO_CLUSTER.parent.mkdir(parents=True, exist_ok=True)
    _NO_CLUSTER.write_text("create_main_cluster = off\n")  # so that Debian neither makes nor starts a server of its own
    try:
        apt_get("update")
        apt_get("install", "--yes", "--no-install-recommends", "postgresql")
    finally:
        if is_ours:
            _NO_CLUSTER.unlink()
    return _installed()


def apt_get(*words: str, cwd: Path = Path("/")) -> None:
    options = ["-qq", "-o", "DPkg::Lock::Timeout=60", "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=30"]
    quiet = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    run_as(Account(), [*quiet, *options, *words], cwd=cwd, within=_APT_WITHIN)


def _from_wheel() -> Installation:
    """Apart from the environment of the tests; as root in a place that the server's account can reach."""
    wheel, _, version = WHEEL.read_text().split()[0].partition("==")
    home = ROOT / "build" / "services" if os.geteuid() else Path("/var/cache/noroshi-tests")
    place = home / f"{wheel}-{version}-{sys.implementation.cache_tag}-{platform.machine()}"
    if not list(place.glob(_IN_WHEEL)):
        print(f"postgres: none is installed; fetching {wheel}, which carries one", file=sys.stderr)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        pinned = ["--only-binary", ":all:", "--require-hashes", "--target", str(place), "--requirement", str(WHEEL)]
        run_as(Account(), [*pip, *pinned], within=_WHEEL_WITHIN)
    return _tried(max(place.glob(_IN_WHEEL)))
