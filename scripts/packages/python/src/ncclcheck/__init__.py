"""Checks whether distributed PyTorch training in a container image will use NCCL, NVLink and RDMA.

>>> import ncclcheck
>>> report = ncclcheck.check("my/image")                    # doctest: +SKIP
>>> report.verdict, report.value("torch.version")           # doctest: +SKIP
('fail', '2.9.0+cu128')

The module runs the program `ncclcheck`, which the same wheel installs, and reads its JSON report.
"""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass, field
from typing import Any, Literal, Mapping, Sequence

__all__ = ["Error", "Fact", "Judgement", "Report", "Site", "check", "program"]

SCHEMA = "ncclcheck/2"
SEVERITIES = ("error", "warning", "info")


class Error(Exception):
    """There is no verdict: the image could not be opened, an option is wrong, or the program is missing."""


@dataclass(frozen=True)
class Site:
    """A place where a fact was read. Each field is None where it does not apply."""

    layer: int | None = None
    """Number of the layer, from 0, the lowest."""
    digest: str | None = None
    """Digest of that layer as it is stored."""
    path: str | None = None
    """Path in the image."""
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The JSON object."""


@dataclass(frozen=True)
class Fact:
    """A fact about the image."""

    state: Literal["seen", "absent", "unknown"]
    value: Any = None
    """The value of a fact that was seen."""
    gap: str | None = None
    """Why the fact is unknown."""
    at: Sequence[Site] = ()
    """Where the value was read."""


@dataclass(frozen=True)
class Judgement:
    """A rule's answer about the image."""

    rule: str
    title: str
    outcome: Literal["pass", "fail", "not-applicable", "unknown", "waived"]
    severity: Literal["error", "warning", "info"]
    owner: str
    """Who has to fix a failure, such as `image` or `host`."""
    message: str | None = None
    """The problem in this image, or why the outcome is unknown."""
    fingerprint: str | None = None
    """Identifies a failure across rebuilds of the image."""
    at: Sequence[Site] = ()
    """Where the values behind a failure were read."""


@dataclass(frozen=True)
class Report:
    """The report about one image, and one host if one was described."""

    verdict: Literal["pass", "fail", "incomplete"]
    """`incomplete`: no rule of the failing severity failed, but one could not be answered."""
    reference: str
    """The image as it was named."""
    manifest: str | None
    """Digest of the image's manifest; None for an image without one."""
    platform: str | None
    facts: Mapping[str, Fact] = field(repr=False)
    """Facts by name."""
    judgements: Sequence[Judgement] = field(repr=False)
    """One for each rule, sorted by the rule's id."""
    raw: Mapping[str, Any] = field(repr=False)
    """The whole JSON report."""

    @property
    def findings(self) -> list[Judgement]:
        """The rules that failed, the worst first. Waived ones are not among them."""
        failed = [judgement for judgement in self.judgements if judgement.outcome == "fail"]
        return sorted(failed, key=lambda finding: (SEVERITIES.index(finding.severity), finding.rule))

    def value(self, name: str) -> Any:
        """Returns the value of a fact, or None if it is absent.

        Raises KeyError if there is no fact of this name, and Error if the fact is unknown: an unknown fact is not an absent one.
        """
        fact = self.facts[name]
        if fact.state == "unknown":
            raise Error(f"{name} is unknown: {fact.gap}")
        return fact.value


def program() -> str:
    """Returns the path of the program: `$NCCLCHECK_PROGRAM`, the one of this installation, or the first in `PATH`."""
    schemes = [sysconfig.get_path("scripts")]
    try:
        schemes.append(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")))
    except (AttributeError, KeyError):  # before Python 3.10, or a platform without a user scheme
        pass
    places = [os.environ.get("NCCLCHECK_PROGRAM"), *(os.path.join(folder, "ncclcheck") for folder in schemes if folder)]
    for place in places:
        if place and os.access(place, os.X_OK) and os.path.isfile(place):
            return place
    found = shutil.which("ncclcheck")
    if found is None:
        raise Error("the program ncclcheck is not installed; reinstall the package, or set NCCLCHECK_PROGRAM to its path")
    return found


def check(image: str | os.PathLike[str], *, host: str | None = None, profile: str | None = None,
          options: Sequence[str] = (), timeout: float | None = None) -> Report:
    """Checks one image, without running anything of it.

    image: a reference, an archive, a layout or another form that `ncclcheck check` accepts.
    host: a description of the host, such as `driver=580,gpu=h100x8`.
    profile: name of a profile, such as `ci`.
    options: more options of `ncclcheck check`, such as `["--no-config"]`.
    timeout: seconds after which the program is stopped.

    Raises Error if there is no verdict, with the message of the program.
    """
    reference = os.fspath(image)
    command = [program(), "check", *options, "--format", "json"]
    for name, value in (("--host", host), ("--profile", profile)):
        command += [name, value] if value is not None else []
    try:
        run = subprocess.run([*command, "--", reference], stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
                             errors="replace", timeout=timeout)
    except subprocess.TimeoutExpired as expired:
        raise Error(f"{reference}: no verdict within {timeout} s") from expired
    except OSError as error:
        raise Error(f"{command[0]} could not be run: {error}") from error
    reports = run.stdout.splitlines()
    if run.returncode not in (0, 1, 3) or not reports:
        raise Error(run.stderr.strip() or f"ncclcheck exited with {run.returncode} and printed nothing")
    if len(reports) != 1:
        raise Error(f"{reference}: {len(reports)} reports, expected one; check one platform and one host at a time")
    try:
        return _report(json.loads(reports[0]))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise Error(f"{reference}: {command[0]} printed no report of the form {SCHEMA}: {error!r}") from error


def _report(raw: dict[str, Any]) -> Report:
    if raw.get("schema") != SCHEMA:
        raise Error(f"the report has the schema {raw.get('schema')!r}; this module reads {SCHEMA!r}")
    image = raw["image"]
    return Report(
        verdict=raw["verdict"], reference=image["reference"], manifest=image.get("manifest"), platform=image.get("platform"),
        facts={name: Fact(fact["state"], fact.get("value"), fact.get("gap"), _sites(fact)) for name, fact in raw["facts"].items()},
        judgements=tuple(
            Judgement(one["rule"], one["title"], one["outcome"], one["severity"], one["owner"], one.get("message"),
                      one.get("fingerprint"), _sites(one))
            for one in raw["judgements"]),
        raw=raw)


def _sites(raw: dict[str, Any]) -> tuple[Site, ...]:
    return tuple(Site(site.get("layer"), site.get("digest"), site.get("path"), site) for site in raw.get("at", ()))
