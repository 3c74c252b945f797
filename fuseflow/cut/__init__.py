"""The division of a program into regions that is expected to take the fewest cycles, where nobody says what is fused."""
