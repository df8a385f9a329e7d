"""Puts the program into the wheel, its platform into the wheel's name, and the place of the project into its metadata."""
import email.utils, os, pathlib, tomllib

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


class PlaceHook(MetadataHookInterface):
    def update(self, metadata):
        package = tomllib.loads(pathlib.Path(self.root, "../../../Cargo.toml").read_text())["workspace"]["package"]
        metadata["urls"] = {"Repository": package["repository"]}
        metadata["authors"] = [dict(zip(("name", "email"), email.utils.parseaddr(author))) for author in package["authors"]]


class ProgramHook(BuildHookInterface):
    def initialize(self, version, build_data):
        program, platform = os.environ.get("NCCLCHECK_PROGRAM"), os.environ.get("NCCLCHECK_WHEEL_PLATFORM")
        if not program or not platform:
            raise RuntimeError("set NCCLCHECK_PROGRAM and NCCLCHECK_WHEEL_PLATFORM, as scripts/release does")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        build_data["shared_scripts"][program] = "ncclcheck"
