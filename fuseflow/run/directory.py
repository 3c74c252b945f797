"""The directory of artifacts of a program."""

MANIFEST = "about.json"
"""The file that says what a directory of artifacts is."""
