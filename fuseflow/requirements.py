"""The requirements of fuseflow, from the metadata of its installation, and the command that installs them."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator


def install_command(*packages: str) -> str:
    """Return the command that installs packages for this Python, in the versions that fuseflow or one of its extras requires.

    It names the packages and not an extra, such as `fuseflow[data]`: pip would look for fuseflow in an index, which is not ours.
    """
    requirements = dict(_requirements())
    return shlex.join([sys.executable, "-m", "pip", "install", *(requirements.get(package, package) for package in packages)])


def _requirements() -> Iterator[tuple[str, str]]:
    """Yield the name of each package that fuseflow or an extra requires, and the requirement. Nothing if it is not installed."""
    from importlib.metadata import PackageNotFoundError, requires  # takes a while, and most runs do without

    try:
        lines = requires("fuseflow") or ()
    except PackageNotFoundError:  # a checkout that was not installed
        return
    for line in lines:
        requirement = line.partition(";")[0].strip()
        yield re.split(r"[^\w.-]", requirement)[0], requirement
