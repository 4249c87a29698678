import torch


def ask(what, device=None):
    """What the GPU says of itself."""
    return getattr(torch.cuda, f"get_device_{what}")(device)


def supports_flash():
    major, minor = ask("capability")
    return (major, minor) >= (8, 0)
