"""Stands in for Horovod, which has to be built, in tests: the originals run with it on the CPU."""
