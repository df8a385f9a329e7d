"""The plan: what to run and how. Every key, its default and what it may hold are here and nowhere else."""
import copy
from collections import namedtuple

OPERATION_NAMES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall", "sendrecv")
DTYPES = ("float32", "float64", "float16", "bfloat16")
MIB = 1 << 20
FULL_SIZES = [8] + [64 << (2 * power) for power in range(13)]
QUICK_SIZES = [8, 64 << 10, 4 * MIB, 64 * MIB, 256 * MIB]

Key = namedtuple("Key", "kind default")


class PlanError(ValueError):
    """The plan is wrong; the text says where and what is expected."""


def positive(value):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        raise PlanError("must be a number above 0")
    return value


def whole(value):
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise PlanError("must be a whole number, 0 or more")
    return value


def positive_whole(value):
    return positive(whole(value))


def boolean(value):
    if not isinstance(value, bool):
        raise PlanError("must be true or false")
    return value


def nonempty(value):
    if not isinstance(value, str) or not value:
        raise PlanError("must be a text that is not empty")
    return value


def one_of(*allowed):
    def kind(value):
        if value not in allowed:
            raise PlanError("must be one of " + ", ".join(allowed))
        return value
    return kind


def list_of(item):
    def kind(value):
        if not isinstance(value, list) or not value:
            raise PlanError("must be a list that is not empty")
        return [item(entry) for entry in value]
    return kind


def optional(present):
    return lambda value: None if value is None else present(value)


def variables(value):
    if not isinstance(value, dict) or not all(isinstance(entry, str) for entry in value.values()):
        raise PlanError("must map names of variables to texts")
    return value


def variable_sets(value):
    return [variables(entry) for entry in value] if value else []


def sleeper(value):
    if not isinstance(value, dict) or set(value) != {"rank", "before"}:
        raise PlanError('must be like {"rank": 1, "before": "all_reduce"}')
    return {"rank": whole(value["rank"]), "before": nonempty(value["before"])}


OPERATIONS_KEY = list_of(one_of(*OPERATION_NAMES))
SIZES_KEY = list_of(positive_whole)

PLAN_KEYS = {
    "env": Key(variables, {}),  # for every process that runs a step
    "lifeline": Key(boolean, False),  # end when standard input does
    "collectives": {
        "backend": Key(one_of("nccl", "gloo"), "nccl"),  # gloo takes CPU tensors: a rehearsal without GPUs
        "operations": Key(OPERATIONS_KEY, list(OPERATION_NAMES)),
        "sizes": Key(optional(SIZES_KEY), None),  # bytes; null: FULL_SIZES, or QUICK_SIZES if quick
        "quick": Key(boolean, False),
        "dtype": Key(one_of(*DTYPES), "float32"),
        "seconds_per_size": Key(optional(positive), None),  # timed calls of one operation at one size; null: by quick
        "point_to_point": Key(boolean, True),  # what the first call between two ranks costs
        "eager": Key(boolean, True),  # hand init_process_group its device_id, if torch takes one
        "env": Key(variables, {}),  # for the ranks, above the plan's own
        "debug_subsystems": Key(nonempty, "INIT,BOOTSTRAP,ENV,NET,GRAPH"),  # TUNING would log each timed call
        "stall_seconds": Key(positive, 120),  # no rank enters a new phase for so long: it hangs
        "sleep_rank": Key(optional(sleeper), None),  # a hang on purpose
        "world": {
            "gpus": Key(optional(positive_whole), None),  # ranks in this container; null: one for each GPU
            "offset": Key(whole, 0),  # the first rank of this container
            "size": Key(optional(positive_whole), None),  # ranks of all containers; null: those of this one
            "master_addr": Key(nonempty, "127.0.0.1"),
            "master_port": Key(optional(positive_whole), None),  # null: a free one, for a world of this container alone
        },
    },
    "forced_network": {
        "operations": Key(OPERATIONS_KEY, ["all_reduce", "sendrecv"]),
        "sizes": Key(SIZES_KEY, [8, MIB, 64 * MIB, 256 * MIB]),
        # NVLS reduces inside the switch, and would keep traffic off the network as P2P and SHM do
        "env": Key(variables, {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_NVLS_ENABLE": "0"}),
    },
    "what_if": {
        "variants": Key(variable_sets, []),
        "rounds": Key(positive_whole, 3),
        "operation": Key(one_of(*OPERATION_NAMES), "all_reduce"),
        "sizes": Key(SIZES_KEY, [64 << 10, 16 * MIB, 256 * MIB]),
    },
}


def complete_plan(given, steps):
    """The plan with every key present. `steps` are all that there are; raises PlanError for what it does not know."""
    names = [step.name for step in steps]
    deadlines = {step.name: Key(positive, step.deadline) for step in steps}
    keys = dict(PLAN_KEYS, steps=Key(list_of(one_of(*names)), [step.name for step in steps if step.by_default]),
                deadlines=deadlines)
    return completed(given, keys, "plan")


def completed(given, keys, place):
    if not isinstance(given, dict):
        raise PlanError("%s: must be an object" % place)
    for key in given:
        if key not in keys:
            raise PlanError("%s: unknown key %r; known are %s" % (place, key, ", ".join(sorted(keys))))
    return {name: complete_key(given, name, key, "%s.%s" % (place, name)) for name, key in keys.items()}


def complete_key(given, name, key, place):
    if isinstance(key, dict):
        return completed(given.get(name, {}), key, place)
    if name not in given:
        return copy.deepcopy(key.default)
    try:
        return key.kind(given[name])
    except PlanError as error:
        raise PlanError("%s: %s, not %r" % (place, error, given[name])) from None
