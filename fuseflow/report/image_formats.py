"""The formats of figures."""

IMAGE_FORMATS = ("png", "svg", "pdf")
"""The endings of their files."""
