"""The functions of `import fuseflow` that do what the commands `estimate`, `explain`, `report` and `sweep` do. The commands call them."""
