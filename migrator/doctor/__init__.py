"""Whether a machine is ready for programs on NPUs: reads its files and variables, runs nothing of it."""
