from dataclasses import asdict, dataclass, fields

import yaml


@dataclass
class TrainConfig:
    # model
    arch: str = "mobilenet_v3_small"
    num_classes: int = 1000
    dropout: float = 0.2
    # data
    data: str = "./data"
    synthetic: bool = False
    image_size: int = 224
    workers: int = 4
    # optimisation
    epochs: int = 100
    steps: int = 0  # stop each epoch after this many steps, 0 for the full epoch
    batch_size: int = 128
    lr: float = 0.064
    momentum: float = 0.9
    weight_decay: float = 1e-5
    label_smoothing: float = 0.1
    clip_grad: float = 5.0
    ema_decay: float = 0.999
    amp: bool = True  # float16 autocast, CUDA only
    # misc
    seed: int = 42
    print_freq: int = 20
    output_dir: str = "./runs/mobilenetv3"
    resume: str = ""

    @classmethod
    def from_yaml(cls, path):
        with open(path) as f:
            values = yaml.safe_load(f) or {}
        unknown = set(values) - {f.name for f in fields(cls)}
        if unknown:
            raise ValueError("unknown options in {}: {}".format(path, ", ".join(sorted(unknown))))
        return cls(**values)

    def override(self, args):
        """Options given on the command line win over the YAML file."""
        for f in fields(self):
            value = getattr(args, f.name, None)
            if value is not None:
                setattr(self, f.name, value)
        return self

    def to_dict(self):
        return asdict(self)


def add_config_options(parser):
    """One command line option for each field of TrainConfig."""
    for f in fields(TrainConfig):
        name = "--" + f.name.replace("_", "-")
        if f.type in (bool, "bool"):
            parser.add_argument(name, dest=f.name, action="store_true", default=None)
            parser.add_argument("--no-" + name[2:], dest=f.name, action="store_false", default=None)
        else:
            parser.add_argument(name, dest=f.name, type=type(f.default), default=None)
    return parser
