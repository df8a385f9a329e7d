"""The variables of this program. Values that may be secrets are not reported."""
import os

VARIABLE_FAMILIES = ("NCCL_", "TORCH_", "PYTORCH_", "CUDA_", "NVIDIA_", "UCX_", "FI_", "GLOO_", "LD_")
VARIABLES = ("MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS")
# They decide which Python and which of its packages a job runs.
PLACES = ("PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX")
NODE = "SLURMD_NODENAME"  # the name of this node in a Slurm allocation


def variables_of_interest():
    return {name: value for name, value in sorted(os.environ.items()) if is_of_interest(name)}


def all_variables():
    """{name: value}, where the value is null unless it is of interest."""
    return {name: value if is_of_interest(name) or name in PLACES or name == NODE else None
            for name, value in sorted(os.environ.items())}


def is_of_interest(name):
    return name.startswith(VARIABLE_FAMILIES) or name in VARIABLES
