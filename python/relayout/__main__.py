"""`python -m relayout` and the script `relayout`: the program of this package, in this process."""
import os
import sys
from pathlib import Path

from relayout._session import onednn

PROGRAM = Path(__file__).parent / "bin" / "relayout"


def main() -> None:
    """Becomes the program: same arguments, streams, signals and exit status."""
    os.environ.setdefault("RELAYOUT_PYTHON", sys.executable)  # compare asks this Python for other optimizers
    library = onednn()
    if library:
        os.environ["RELAYOUT_ONEDNN"] = str(library)  # run and bench use it, as Session does
    os.execv(PROGRAM, ["relayout", *sys.argv[1:]])


if __name__ == "__main__":
    main()
