"""Let torchvision be imported next to a torch build that its compiled extension does not match.

A torchvision wheel built for CUDA cannot load its extension beside a CPU build of torch, and its import then
stops at "operator torchvision::nms does not exist". With this folder on PYTHONPATH the two operators that the
import asks for are declared (without a kernel) just before torchvision is first imported. Where the extension
loads, nothing is declared. Programs that do not import torchvision are not touched.
"""
import glob
import importlib.machinery
import os
import sys

SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_libraries = []  # a Library takes its operators with it when it is collected


def declare_missing_operators(package_dir):
    import torch

    for pattern in ("_C*.so", "_C*.pyd"):
        for path in glob.glob(os.path.join(package_dir, pattern)):
            try:
                torch.ops.load_library(path)
                return
            except (ImportError, OSError):
                pass
    library = torch.library.Library("torchvision", "FRAGMENT")
    for schema in SCHEMAS:
        if not hasattr(torch.ops.torchvision, schema.split("(")[0]):
            library.define(schema)
    _libraries.append(library)


class TorchvisionFinder:
    """Finds nothing itself: it prepares torch when torchvision is asked for the first time."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "torchvision":
            return None
        sys.meta_path.remove(cls)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin:
            try:
                import torch  # noqa: F401
            except ImportError:
                return spec
            declare_missing_operators(os.path.dirname(spec.origin))
        return spec


sys.meta_path.insert(0, TorchvisionFinder)
