"""Steps of a program that computes new values of its own inputs, such as training."""
