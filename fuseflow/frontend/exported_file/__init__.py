"""Exported programs in files (`.pt2`), which `torch.export.save` writes. A file is hostile until it is checked, and nothing in it is run.

PyTorch's own reader unpickles what a file asks it to, evaluates its expressions of sizes, and executes its guards. So it is not called.

reader       the walk: a file becomes an exported program, with weights, constants and sample inputs as tensors
description  the description of the program, in which every text that becomes code elsewhere is checked or left out
inputs       sample inputs with other sizes where the program allows it
"""
