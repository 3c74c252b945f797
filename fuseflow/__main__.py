"""The command `fuseflow`, which is also what `python -m fuseflow` runs."""

import atexit
import gc

from fuseflow.cli.main import main


def run() -> None:
    """Run the command line in a process of its own, which collects no garbage when it ends: the system takes its memory back."""
    atexit.register(gc.freeze)
    main(prog_name="fuseflow")


if __name__ == "__main__":
    run()
