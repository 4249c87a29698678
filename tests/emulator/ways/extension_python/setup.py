import torch
from setuptools import find_packages, setup
from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, CUDAExtension


def extensions():
    if not torch.cuda.is_available() or CUDA_HOME is None:
        return []
    extension = CUDAExtension
    return [extension("ops._C", ["ops/src/scan.cpp", "ops/src/scan_kernel.cu"])]


if __name__ == "__main__":
    setup(
        name="ops",
        packages=find_packages(),
        ext_modules=extensions(),
        cmdclass={"build_ext": BuildExtension},
    )
