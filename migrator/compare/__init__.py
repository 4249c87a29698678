"""The same numbers: what a program's tensors were, and where those of two runs part."""
