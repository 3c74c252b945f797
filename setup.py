"""The tag of the wheel, which pyproject.toml cannot say.

Where machine code is inside, the wheel is for this platform alone. Any version of Python can use that code, as it calls nothing of Python.
"""

from __future__ import annotations

from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel


class Package(Distribution):
    def has_ext_modules(self) -> bool:
        return any(Path("fuseflow/native/objects").rglob("*.kernel"))


class Wheel(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


setup(distclass=Package, cmdclass={"bdist_wheel": Wheel})
