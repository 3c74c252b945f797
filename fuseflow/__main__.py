"""The command `fuseflow`; `python -m fuseflow` runs it, too."""

import atexit
import gc
import os
import signal


def run() -> None:
    """Run the command line in a process of its own, which collects no garbage when it ends: the system takes its memory back."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))  # until the next lines are imported, which takes a while
    gc.disable()  # until the command works: modules stay
    from fuseflow.cli.process import end_when_interrupted, open_closed_streams

    end_when_interrupted()
    open_closed_streams()
    from fuseflow.cli.main import main
    from fuseflow.garbage_collection import collect_what_follows

    atexit.register(gc.freeze)
    main(prog_name="fuseflow", obj=collect_what_follows)


if __name__ == "__main__":
    run()
