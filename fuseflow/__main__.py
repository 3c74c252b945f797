"""`python -m fuseflow` is the command `fuseflow`."""

from fuseflow.cli.main import main

main(prog_name="fuseflow")
