"""The Python side of the emulated NPU: lives in the processes of the program that runs on it."""
