"""Machines: the cycles of each kind of unit, the depths of FIFOs and the settings of the memory, read from YAML files."""
