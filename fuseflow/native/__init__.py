"""This package compiles kernels to machine code, once, and gives them records at addresses, through which they see memory."""
