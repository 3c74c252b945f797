"""The area of circuits: yosys measures each module, and the area of a graph is the sum of its modules."""
