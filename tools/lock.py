"""Write `requirements.lock`, the versions that the project is developed with: `python tools/lock.py`, which asks pip for the newest ones.

They are constraints: each is used if something needs the package. Torch has its public version, as builds for other hardware have it, too.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
HEADER = "# Made by `python tools/lock.py` on Linux and Python 3.11; `make` and .ci/run install these versions.\n"


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(requirement for extra in extras for requirement in extra)]
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    command = [*pip, "--dry-run", "--ignore-installed", "--report", "-", *wanted]
    report = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    packages = [entry["metadata"] for entry in report["install"]]
    lines = sorted(f"{_normal(package['name'])}=={package['version'].partition('+')[0]}\n" for package in packages)
    LOCK.write_text(HEADER + "".join(lines), encoding="utf-8")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main()
