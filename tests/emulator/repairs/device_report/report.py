import torch

FIELDS = ("name", "major", "total_memory")


class Device:
    def __init__(self, found):
        self.found = found
        self.memory = found["total_memory"]

    @property
    def has_bf16(self):
        return self.found["major"] >= 8


def look():
    properties = torch.cuda.get_device_properties(0)
    return Device({field: getattr(properties, field) for field in FIELDS})
