"""The language of firing rules: expressions, rules, and streams that are read together."""
