"""Stands before torch_npu where a program has to run without it."""

raise ImportError("torch_npu is not installed here")
