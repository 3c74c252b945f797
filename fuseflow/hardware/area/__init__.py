"""The area of circuits: of each module, by yosys, and of a graph, as the sum of its modules."""
