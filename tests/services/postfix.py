"""Where smtp-sink and smtp-source come from: PATH, Debian's package, unpacked only; or one line that says why not."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.services.installation import Account, ServiceMissingError, apt_get, in_one_line, plain_environment, run_as
from tests.services.runs import ROOT

PROGRAMS = ("smtp-sink", "smtp-source")
UNPACKED = ROOT / "build" / "services" / "postfix"

_WITHIN = 10.0
_LAYERS = 4
"""How far libraries are followed: those that the programs need, those that these need, and so on."""


class PostfixTools(NamedTuple):
    """`libraries` is what the loader has to know about programs that are not installed."""

    programs: Path
    libraries: str = ""

    def command(self, program: str, *words: str) -> list[str]:
        return [str(self.programs / program), *words]

    @property
    def environment(self) -> Mapping[str, str]:
        return plain_environment(LD_LIBRARY_PATH=self.libraries) if self.libraries else plain_environment()


def find_postfix() -> PostfixTools:
    """The first that works; apt is asked only if none is installed. Nothing is installed, and nothing is started."""
    reasons = []
    for source in (_installed, _unpacked):
        try:
            return source()
        except (ServiceMissingError, RuntimeError, OSError, subprocess.TimeoutExpired) as why:
            reasons.append(in_one_line(why))
    raise ServiceMissingError("; ".join(reasons))


def _installed() -> PostfixTools:
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])  # Debian puts these where only root looks
    found = [shutil.which(program, path=path) for program in PROGRAMS]
    if found[0] is None or None in found:
        raise ServiceMissingError(f"no {' and '.join(PROGRAMS)} on PATH or in /usr/sbin")
    return _tried(PostfixTools(Path(found[0]).parent))


def _unpacked() -> PostfixTools:
    """Made beside the place where it will be, so that a run which is cut short leaves nothing that looks whole."""
    if not UNPACKED.exists():
        if not shutil.which("apt-get"):
            raise ServiceMissingError("no apt")
        print("postfix: none is installed; unpacking Debian's, for its two programs", file=sys.stderr)
        fresh = UNPACKED.with_name(f"{UNPACKED.name}-{os.getpid()}")
        try:
            _unpack_all(fresh)
            fresh.rename(UNPACKED)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return _tried(_tools_in(UNPACKED))


def _unpack_all(place: Path) -> None:
    """The package, and of what it depends on the libraries that this machine lacks."""
    packages = ["postfix"]
    for _ in range(_LAYERS):
        packages = list(dict.fromkeys(needed for package in packages for needed in _unpack(package, place)))
        try:
            _tried(_tools_in(place))
        except ServiceMissingError:
            if not packages:
                raise
        else:
            return


def _unpack(package: str, place: Path) -> Iterator[str]:
    """Answers the libraries that it depends on."""
    archives = place / package
    archives.mkdir(parents=True)
    _download(package, archives)
    (archive,) = archives.glob("*.deb")
    run_as(Account(), ["dpkg-deb", "--extract", str(archive), str(place)])
    depends = run_as(Account(), ["dpkg-deb", "--field", str(archive), "Depends"])
    shutil.rmtree(archives)
    for wanted in depends.split(","):
        name = wanted.split("|")[0].split("(")[0].strip()
        if name.startswith("lib") and name != "libc6":
            yield name


def _download(package: str, folder: Path) -> None:
    """A machine that never asked has no lists yet; only root may fetch them."""
    try:
        apt_get("download", package, cwd=folder)
    except RuntimeError:
        if os.geteuid():
            raise
        apt_get("update")
        apt_get("download", package, cwd=folder)


def _tools_in(place: Path) -> PostfixTools:
    folders = [place / "usr/lib/postfix", *place.glob("usr/lib/*-linux-*"), *place.glob("lib/*-linux-*")]
    return PostfixTools(place / "usr/sbin", os.pathsep.join(map(str, folders)))


def _tried(tools: PostfixTools) -> PostfixTools:
    """Both tell how they are used when they are asked for nothing, if only they can be loaded."""
    for program in PROGRAMS:
        command, environment = tools.command(program), tools.environment
        told = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_WITHIN, check=False)
        if "usage" not in told.stderr:
            raise ServiceMissingError(f"{program} ended with {told.returncode}: {told.stderr.strip()}")
    return tools
