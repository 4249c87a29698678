from .corpus import Sequences, pad_batch
from .network import TransformerLM
from .settings import Settings

__all__ = ["Sequences", "Settings", "TransformerLM", "pad_batch"]
