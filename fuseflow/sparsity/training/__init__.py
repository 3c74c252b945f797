"""Training of sparse models: masks that hold while an optimizer changes the weights, and recipes that make models sparse step by step."""
