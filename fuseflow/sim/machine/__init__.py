"""Machines: cycles of each kind of unit, FIFO depths and memory settings, read from YAML files."""
