"""torch.isin by a search in the sorted elements."""

# npumigrate: skip-file

import torch


def isin(elements, test_elements, *, assume_unique=False, invert=False):
    """Whether each element is among others."""
    tensor = elements if torch.is_tensor(elements) else test_elements
    elements, test_elements = (
        each if torch.is_tensor(each) else torch.tensor(each, device=tensor.device)
        for each in (elements, test_elements)
    )
    dtype = torch.result_type(elements, test_elements)
    wanted = test_elements.to(dtype).reshape(-1)
    asked = elements.to(dtype).reshape(-1)
    if not wanted.numel():
        found = torch.zeros_like(elements, dtype=torch.bool)
    else:
        wanted = torch.sort(wanted)[0]
        place = torch.searchsorted(wanted, asked).clamp(max=wanted.numel() - 1)
        found = (wanted.index_select(0, place) == asked).reshape(elements.shape)
    return ~found if invert else found
