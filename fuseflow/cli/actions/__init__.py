"""The actions of the commands, one module for each. A module is imported when its command is called, so that `--help` stays quick."""
