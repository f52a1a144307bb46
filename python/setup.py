"""A wheel with the manager in it runs on one platform, with any Python; one without it runs anywhere."""

import pathlib

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel

HAS_MANAGER = pathlib.Path("orbitkv/_manager").is_dir()


class PlatformDistribution(Distribution):
    """Belongs to a platform where the manager is in it."""

    def has_ext_modules(self) -> bool:
        return HAS_MANAGER


class PlatformWheel(bdist_wheel):
    """Nothing of it is made for a version of Python."""

    def get_tag(self) -> "tuple[str, str, str]":
        python, abi, platform = super().get_tag()
        return ("py3", "none", platform) if HAS_MANAGER else (python, abi, platform)


setup(distclass=PlatformDistribution, cmdclass={"bdist_wheel": PlatformWheel})
