"""Files that were damaged or made up, and what every reader of fuseflow must do with them: read them, or say in one message why not."""
