"""Writes the stubs (`jaxbandits/stubs.py`) before the package is built or installed, be it editable."""

import subprocess
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class StubsHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        subprocess.run([sys.executable, "-m", "jaxbandits.stubs"], cwd=self.root, check=True, stdout=subprocess.DEVNULL)
