"""umoci: unpacks an image of a layout into a folder."""
import pathlib, shutil, subprocess, tempfile

import listing


class Umoci:
    def __init__(self, name, work):
        self.name, self.work = name, pathlib.Path(work, name)
        self.work.mkdir()

    def listing(self, image):
        """(listing, None), or (None, the engine's error)."""
        at = pathlib.Path(tempfile.mkdtemp(dir=self.work))
        done = subprocess.run(["umoci", "unpack", "--image", "%s:latest" % image.layout, at / "bundle"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
        try:
            return (None, done.stdout.strip()) if done.returncode else (listing.of_folder(at / "bundle/rootfs"), None)
        finally:
            shutil.rmtree(at, ignore_errors=True)

    def close(self):
        pass
