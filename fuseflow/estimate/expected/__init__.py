"""Expected shapes. What the streams of a graph look like on average follows from tensor statistics alone."""
