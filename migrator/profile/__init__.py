"""What a profile shows: where a step's time and memory go, and what to change. Reads files, runs nothing of them."""
