"""The language of firing rules: expressions, rules, and nested streams that are read together."""
