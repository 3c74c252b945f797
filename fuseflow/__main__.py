"""The module that `python -m fuseflow` runs: it is the command `fuseflow`."""

from fuseflow.cli.main import main

main(prog_name="fuseflow")
