@register_rule("aten._cdist_forward")
def _distances(x: Tensor, y: Tensor, *args: Any) -> Tensor:
    """A distance depends on all entries of a row of x and of a row of y."""
    return x.sum(-1).unsqueeze(-1) + y.sum(-1).unsqueeze(-2)
