@_fluent
def prefetch(self, tensor: str, lines: int) -> Schedule:
    """Read this many lines of a tensor ahead: `prefetch("W1", 4)`."""
    return self._with("prefetch", {tensor: lines})

def _with(self, key: str, more: Any) -> Schedule:
