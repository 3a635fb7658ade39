"""Builds without what an earlier build left in ``build/lib``: a module that became a package, or went, would come back.

All else is in ``pyproject.toml``.
"""

import shutil

from setuptools import setup
from setuptools.command.build_py import build_py


class FreshBuild(build_py):
    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


setup(cmdclass={"build_py": FreshBuild})
