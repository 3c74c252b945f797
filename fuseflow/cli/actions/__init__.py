"""What the commands do, one module for each. A module is imported when its command is called, so that `--help` stays quick."""
