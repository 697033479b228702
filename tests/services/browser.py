"""Where Chromium comes from: the path that `NOROSHI_TEST_CHROMIUM` names, PATH, apt; or one line that says why not."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.services.installation import ServiceMissingError, apt_get, in_one_line, plain_environment

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox"] if os.geteuid() == 0 else []
"""As root Chromium does not start with its sandbox; the pages that tests open are our own."""

_PACKAGES = ("chromium", "fonts-noto-cjk")
_WITHIN = 60.0


@cache
def find_chromium() -> Path:
    """The first that works; apt is asked only if none is installed."""
    reasons = []
    for source in (_installed, _from_apt):
        try:
            return source()
        except (ServiceMissingError, RuntimeError, OSError, subprocess.TimeoutExpired) as why:
            reasons.append(in_one_line(why))
    raise ServiceMissingError("; ".join(reasons))


def _installed() -> Path:
    given = os.environ.get("NOROSHI_TEST_CHROMIUM")
    found = given or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise ServiceMissingError(f"no {' or '.join(NAMES)} on PATH")
    return _tried(Path(found))


def _tried(path: Path) -> Path:
    """Some are only a hint to install something else."""
    told = subprocess.run(
        [str(path), "--version"],
        env=plain_environment(),
        capture_output=True,
        text=True,
        timeout=_WITHIN,
        check=False,
    )
    if told.returncode or "chrom" not in told.stdout.lower():
        raise ServiceMissingError(f"{path} --version ended with {told.returncode}")
    return path


def _from_apt() -> Path:
    if os.geteuid() or not shutil.which("apt-get"):
        raise ServiceMissingError("apt needs root" if os.geteuid() else "no apt")
    print("chromium: none is installed; asking apt for one", file=sys.stderr)
    apt_get("update")
    apt_get("install", "--yes", "--no-install-recommends", *_PACKAGES)
    return _installed()
