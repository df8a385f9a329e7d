"""Makes the payload's modules importable as the package `ncclcheck_probe`, before they are joined into one program."""

import pathlib
import sys
import types

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
PAYLOAD = REPOSITORY / "src/probe/payload"

package = types.ModuleType("ncclcheck_probe")
# `stand_in` has a wire.py, for as long as the payload's folder has none.
package.__path__ = [str(PAYLOAD), str(pathlib.Path(__file__).with_name("stand_in"))]
sys.modules["ncclcheck_probe"] = package
sys.dont_write_bytecode = True
