"""Dispatch of operators on stored sparse tensors: the formats of arguments and results select an implementation."""
