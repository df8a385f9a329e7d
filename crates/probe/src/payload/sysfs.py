"""Reading of kernel files: mostly /sys, some of /proc."""

import errno
import os
import re

from ncclcheck_probe.readings import Unread, errno_name


def kernel_text(path):
    """The text of a file of /sys or /proc, without surrounding white space."""
    try:
        with open(path, errors="replace") as file:
            return file.read().strip()
    except OSError as error:
        raise Unread("%s: %s" % (path, errno_name(error.errno))) from None


def kernel_number(path):
    """The number in a file of /sys or /proc."""
    text = kernel_text(path)
    try:
        return int(text, 0)
    except ValueError:
        raise Unread("%s is not a number: %r" % (path, text)) from None


def folder_names(path):
    """The names in a folder, mlx5_2 before mlx5_10; empty if the folder does not exist."""
    try:
        return sorted(os.listdir(path), key=natural_order)
    except OSError as error:
        if error.errno == errno.ENOENT:
            return []
        raise Unread("%s: %s" % (path, errno_name(error.errno))) from None


def natural_order(name):
    """A sort key that compares digits as numbers."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name)]


def number_ranges(numbers):
    """`0-3,8` for {0, 1, 2, 3, 8}: the format of the kernel and nvidia-smi for sets of CPUs or NUMA nodes."""
    ranges = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(first) if first == last else "%d-%d" % (first, last) for first, last in ranges)
