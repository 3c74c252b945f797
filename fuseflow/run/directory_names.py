"""The directory of artifacts of a program."""

MANIFEST = "about.json"
"""The file that describes a directory of artifacts."""
SELECTIONS = "selections"
"""The folder of the tensors that the compiler made for indices with an offset or a factor, which no file of the user has."""
