"""Makes the payload's modules importable as the package `ncclcheck_probe`, before they are joined into one program."""

import pathlib
import sys
import types

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
PAYLOAD = REPOSITORY / "src/probe/payload"

package = types.ModuleType("ncclcheck_probe")
package.__path__ = [str(PAYLOAD)]
sys.modules["ncclcheck_probe"] = package
sys.dont_write_bytecode = True
