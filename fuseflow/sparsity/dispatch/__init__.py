"""Dispatch of operators on stored sparse tensors: by the formats of their arguments and results, to what is registered for them."""
