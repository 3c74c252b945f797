"""Exported programs in files (`.pt2`), which `torch.export.save` writes. A file is hostile until it is checked, and nothing in it is run.

PyTorch's own reader unpickles what a file asks it to, evaluates its expressions of sizes, and executes its guards. So it is not called.

archive      the members of the file, which are stored as they are
description  the description of the program, in which every text that becomes code elsewhere is checked or left out
payload      weights, constants and sample inputs as tensors
reader       the walk: a file becomes an exported program
inputs       sample inputs with other sizes where the program allows it
"""
