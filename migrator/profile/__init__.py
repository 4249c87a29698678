"""What a profile shows: where a step's time and memory go, and what to change. Runs nothing of it."""
