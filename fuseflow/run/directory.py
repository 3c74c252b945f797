"""The directory of artifacts of a program."""

MANIFEST = "about.json"
"""The file that says what a directory of artifacts is."""
SELECTIONS = "selections"
"""The folder of the tensors that the compiler made for indices with an offset or a factor, which no file of the user has."""
