"""Prints rows of cann_dtypes.csv that name operators or arguments that are not there."""

import csv
import os

import torch
import torch_npu  # noqa: F401 (its operators)

with open(f"{os.environ['NPUMIGRATE_EMULATOR_API_DB']}/by_hand/cann_dtypes.csv", newline="") as file:
    rows = list(csv.DictReader(file))
ALL = torch._C._dispatch_get_all_op_names()
for row in rows:
    for operator in row["operators"].split():
        found = [name for name in ALL if name.split(".")[0] == operator or name == operator]
        if not found:
            print(operator, "is no operator")
            continue
        packet, _, overload = found[0].partition(".")
        names = {argument.name for argument in torch._C._get_schema(packet, overload).arguments}
        missing = set(row["arguments"].split()) - names - ({"self"} if "input" in names else set())
        if missing:
            print(operator, "has no", *missing)
