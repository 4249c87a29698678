import configparser

import torch

_parser = configparser.ConfigParser()
_parser.read_string("[run]\nunit = CUDA\n")


def begin():
    unit = _parser["run"]["unit"].lower()
    torch.set_default_device(unit)
