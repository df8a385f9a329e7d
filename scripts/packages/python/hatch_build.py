"""Puts the program into the wheel, and its platform into the wheel's name."""
import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProgramHook(BuildHookInterface):
    def initialize(self, version, build_data):
        program, platform = os.environ.get("NCCLCHECK_PROGRAM"), os.environ.get("NCCLCHECK_WHEEL_PLATFORM")
        if not program or not platform:
            raise RuntimeError("set NCCLCHECK_PROGRAM and NCCLCHECK_WHEEL_PLATFORM, as scripts/release does")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        build_data["shared_scripts"][program] = "ncclcheck"
