"""Settings: those of config.yaml, which options of the command line replace."""
import argparse
from pathlib import Path

import yaml

FILE = Path(__file__).with_name("config.yaml")


def boolean(text):
    return str(text).lower() in ("1", "true", "yes")


def get_config():
    settings = yaml.safe_load(FILE.read_text())
    parser = argparse.ArgumentParser()
    parser.add_argument("--device_target", default=settings["device_target"], choices=["GPU", "CPU"])
    parser.add_argument("--checkpoint", default="")
    for name, value in settings.items():
        if name == "device_target":
            continue
        if isinstance(value, bool):
            parser.add_argument(f"--{name}", type=boolean, nargs="?", const=True, default=value)
        else:
            parser.add_argument(f"--{name}", type=type(value), default=value)
    return parser.parse_args()
