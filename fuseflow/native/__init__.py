"""This package compiles kernels to machine code, once, and has the records at addresses through which kernels access memory."""
