from argparse import ArgumentParser
from dataclasses import dataclass, field, fields
from typing import Literal, Optional

Device = Literal["auto", "cpu", "cuda"]
BATCH_SIZE = {"cpu": 2, "cuda": 4}


@dataclass
class TrainOptions:
    device: Device = "cuda"
    device_id: int = field(default=0, metadata={"help": "which GPU"})
    precision: str = field(default="fp32", metadata={"choices": ["fp32", "bf16"]})
    epochs: int = 1
    backend: str = "nccl"
    batch_size: Optional[int] = None

    def __post_init__(self):
        if self.batch_size is None:
            self.batch_size = BATCH_SIZE[self.device]

    @property
    def place(self):
        return f"{self.device}:{self.device_id}" if self.device == "cuda" else self.device


def parse(cls):
    parser = ArgumentParser()
    for each in fields(cls):
        kind = int if each.type in (int, Optional[int]) else str
        parser.add_argument(f"--{each.name}", type=kind, default=each.default, **each.metadata)
    return cls(**vars(parser.parse_args()))
