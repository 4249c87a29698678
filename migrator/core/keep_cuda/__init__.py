"""Mode keep-cuda: one source for CUDA, NPUs and the CPU. The same findings, with other fixes."""
