"""Graphs on a reconfigurable array of fixed size: whether a region fits, where its nodes lie, and how its streams are routed."""
