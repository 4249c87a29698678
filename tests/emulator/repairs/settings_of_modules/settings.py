import shutil

ON_GPU = shutil.which("nvidia-smi") is not None
PLACE = "cuda" if ON_GPU else "cpu"
FAMILY = "".join(("cu", "da"))
