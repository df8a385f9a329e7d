"""The plan of a run. Every key, its default and its valid values are defined here alone."""
import copy
from collections import namedtuple

OPERATION_NAMES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall", "sendrecv")
DTYPES = ("float32", "float64", "float16", "bfloat16")
MIB = 1 << 20
FULL_SIZES = [8] + [64 << (2 * power) for power in range(13)]
QUICK_SIZES = [8, 64 << 10, 4 * MIB, 64 * MIB, 256 * MIB]

Key = namedtuple("Key", "kind default")


class PlanError(ValueError):
    """The plan is invalid. The text names the key and the expected value."""


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
        raise PlanError("must be a non-empty string")
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
            raise PlanError("must be a non-empty list")
        return [item(entry) for entry in value]
    return kind


def optional(present):
    return lambda value: None if value is None else present(value)


def variables(value):
    if not isinstance(value, dict) or not all(isinstance(entry, str) for entry in value.values()):
        raise PlanError("must map variable names to strings")
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
    "lifeline": Key(boolean, False),  # end at the end of standard input
    "collectives": {
        "backend": Key(one_of("nccl", "gloo"), "nccl"),  # gloo uses CPU tensors, for a rehearsal without GPUs
        "operations": Key(OPERATIONS_KEY, list(OPERATION_NAMES)),
        "sizes": Key(optional(SIZES_KEY), None),  # bytes; null: FULL_SIZES, or QUICK_SIZES if quick
        "quick": Key(boolean, False),
        "dtype": Key(one_of(*DTYPES), "float32"),
        "seconds_per_size": Key(optional(positive), None),  # timed calls per operation and size; null: by quick
        "point_to_point": Key(boolean, True),  # measure the first call between two ranks
        "eager": Key(boolean, True),  # pass device_id to init_process_group, if torch accepts it
        "env": Key(variables, {}),  # for the ranks, overriding the plan's own
        "debug_subsystems": Key(nonempty, "INIT,BOOTSTRAP,ENV,NET,GRAPH"),  # TUNING would log each timed call
        "stall_seconds": Key(positive, 120),  # a hang, if no rank enters a new phase for this long
        "sleep_rank": Key(optional(sleeper), None),  # an intended hang
        "world": {
            "gpus": Key(optional(positive_whole), None),  # ranks in this container; null: one for each GPU
            "offset": Key(whole, 0),  # the first rank of this container
            "size": Key(optional(positive_whole), None),  # ranks of all containers; null: those of this one
            "master_addr": Key(nonempty, "127.0.0.1"),
            "master_port": Key(optional(positive_whole), None),  # null: a free one, if all ranks are in this container
        },
    },
    "forced_network": {
        "operations": Key(OPERATIONS_KEY, ["all_reduce", "sendrecv"]),
        "sizes": Key(SIZES_KEY, [8, MIB, 64 * MIB, 256 * MIB]),
        # NVLS reduces inside the switch, which would keep traffic off the network as P2P and SHM do
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
    """The plan with defaults for all missing keys. `steps` are all steps. Raises PlanError for an unknown key or step,
    or an invalid value."""
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
            raise PlanError("%s: unknown key %r; known keys: %s" % (place, key, ", ".join(sorted(keys))))
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
