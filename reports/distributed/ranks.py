"""How a converted program learns which rank it is: the conversion copies these functions into its files."""

import json
import os
import subprocess
import sys


def join_ranks():
    """Set torchrun's variables, which torch reads, from those of any launcher; without one, for one rank.

    Where only a part is set the program stops: it would train alone, or on the NPU of another rank.
    """
    launchers = (  # rank, world size, local rank, local world size
        ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
        # OpenMPI, MVAPICH, MPICH and Intel MPI
        (*(f"OMPI_COMM_WORLD_{name}" for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")),),
        (*(f"MV2_COMM_WORLD_{name}" for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")),),
        ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
        # srun of SLURM; the script of a batch job has some of these variables, too
        ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"),
        # ModelArts; the rest is in its rank table
        ("RANK_ID", "RANK_SIZE", "ASCEND_DEVICE_ID", ""),
    )
    env = os.environ
    names = next((one for one in launchers if all(env.get(name, "").isdigit() for name in one[:3])), None)
    if names is None:
        sizes = [one[1] for one in launchers] + ["SLURM_NTASKS", "MA_NUM_HOSTS"]
        told = [name for name in sizes if env.get(name, "1") != "1"]
        ranks = [*(one[:2] for one in launchers if one[0] != "SLURM_PROCID"), ("LOCAL_RANK", "WORLD_SIZE")]
        told += [name for name, total in ranks if name in env and total not in env]
        if told:
            told = ", ".join(f"{name}={env[name]}" for name in told)
            sys.exit(f"{told}: RANK, WORLD_SIZE and LOCAL_RANK have to be set, as torchrun does it")
        env.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", LOCAL_WORLD_SIZE="1")
        env.setdefault("MASTER_PORT", "0")  # any free one
        names = launchers[0]
    if int(env[names[0]]) >= int(env[names[1]]):
        sys.exit(f"{names[0]}={env[names[0]]} is no rank: {names[1]}={env[names[1]]}")
    for name, theirs in zip(launchers[0], names):
        if theirs in env:
            env[name] = env[theirs].split("(")[0].split(",")[0]  # SLURM: 4(x2) are 4 on each of 2 machines
    if not env.get("MASTER_ADDR"):
        env["MASTER_ADDR"] = first_machine(names[0])
    env.setdefault("MASTER_PORT", "29500")


def first_machine(launcher):
    """The address of the machine with rank 0, and the number of ranks on it in LOCAL_WORLD_SIZE."""
    env = os.environ
    if launcher == "RANK_ID" and os.path.isfile(env.get("RANK_TABLE_FILE", "")):
        with open(env["RANK_TABLE_FILE"]) as file:
            table = json.load(file)
        older = [server for group in table.get("group_list", ()) for server in group["instance_list"]]
        first = (table.get("server_list") or older)[0]
        env["LOCAL_WORLD_SIZE"] = str(len(first.get("device") or first["devices"]))
        return first.get("host_ip") or first["server_id"]
    if env["WORLD_SIZE"] in ("1", env.get("LOCAL_WORLD_SIZE")):
        return "127.0.0.1"
    if launcher == "SLURM_PROCID":
        command = ["scontrol", "show", "hostnames", env["SLURM_STEP_NODELIST"]]
        return subprocess.check_output(command, universal_newlines=True).split()[0]
    sys.exit("MASTER_ADDR is not set: the address of the machine with rank 0")
