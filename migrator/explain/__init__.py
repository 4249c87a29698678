"""What the errors in a log mean: which came first, on which rank, from which line, and what to do."""
