"""Processing pipelines: what has to be known of the logs, besides the rules.

A pipeline of pySigma renames fields and adds conditions. `"windows"` is ours: a rule's logsource
becomes a condition on `Channel` and `EventID`, as Windows' own logs and Sysmon's have them. So
events of other sources are no candidates.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sigma.exceptions import SigmaError
from sigma.pipelines.common import windows_logsource_mapping
from sigma.processing.conditions import LogsourceCondition
from sigma.processing.pipeline import ProcessingItem, ProcessingPipeline
from sigma.processing.transformations import AddConditionTransformation

from matchmill.errors import FileFormatError, InputError, did_you_mean, shown

__all__ = ["pipeline_of", "windows"]

_SYSMON = "Microsoft-Windows-Sysmon/Operational"
_SYSMON_EVENTS: dict[str, list[int]] = {
    "process_creation": [1],
    "file_change": [2],
    "network_connection": [3],
    "sysmon_status": [4, 16],
    "process_termination": [5],
    "driver_load": [6],
    "image_load": [7],
    "create_remote_thread": [8],
    "raw_access_thread": [9],
    "process_access": [10],
    "file_event": [11],
    "registry_add": [12],
    "registry_delete": [12],
    "registry_set": [13],
    "registry_rename": [14],
    "registry_event": [12, 13, 14],
    "create_stream_hash": [15],
    "pipe_created": [17, 18],
    "wmi_event": [19, 20, 21],
    "dns_query": [22],
    "file_delete": [23, 26],
    "clipboard_capture": [24],
    "process_tampering": [25],
    "file_delete_detected": [26],
    "file_block_executable": [27],
    "file_block_shredding": [28],
    "file_executable_detected": [29],
    "sysmon_error": [255],
}
_POWERSHELL_EVENTS = {
    "ps_module": ("Microsoft-Windows-PowerShell/Operational", 4103),
    "ps_script": ("Microsoft-Windows-PowerShell/Operational", 4104),
    "ps_classic_start": ("Windows PowerShell", 400),
    "ps_classic_provider_start": ("Windows PowerShell", 600),
    "ps_classic_script": ("Windows PowerShell", 800),
}


def windows() -> ProcessingPipeline:
    """Return a pipeline that turns logsources of Windows into conditions on Channel and EventID."""
    items = [
        _item({"category": category}, {"Channel": _SYSMON, "EventID": numbers})
        for category, numbers in _SYSMON_EVENTS.items()
    ]
    items += [
        _item({"category": category}, {"Channel": channel, "EventID": number})
        for category, (channel, number) in _POWERSHELL_EVENTS.items()
    ]
    services: dict[str, Any] = {**windows_logsource_mapping, "sysmon": _SYSMON}
    items += [_item({"service": name}, {"Channel": found}) for name, found in services.items()]
    return ProcessingPipeline(items, name="windows")


def _item(logsource: dict[str, str], conditions: dict[str, Any]) -> ProcessingItem:
    return ProcessingItem(
        AddConditionTransformation(conditions),
        rule_conditions=[LogsourceCondition(product="windows", **logsource)],
    )


_OURS = {"windows": windows}


def pipeline_of(pipelines: Iterable[Any]) -> ProcessingPipeline:
    """Join pipelines: names of ours or of installed ones, paths of YAML files, or objects."""
    joined = ProcessingPipeline()
    for given in [pipelines] if isinstance(pipelines, (str, os.PathLike)) else pipelines:
        joined += _one(given)
    return joined


def _one(given: Any) -> ProcessingPipeline:
    if isinstance(given, ProcessingPipeline):
        return given
    if not isinstance(given, (str, os.PathLike)):
        raise InputError(
            f"a pipeline is a name, the path of a YAML file or a ProcessingPipeline, not"
            f" {shown(given)}"
        )
    name = os.fspath(given)
    if name in _OURS:
        return _OURS[name]()
    if name.endswith((".yml", ".yaml")):
        try:
            return ProcessingPipeline.from_yaml(Path(name).read_text(encoding="utf-8"))
        except OSError as error:
            raise FileFormatError(f"{name} cannot be read: {error.strerror or error}") from error
        except SigmaError as error:
            raise FileFormatError(f"{name} is no pipeline: {error}") from error
    return _installed(name)


def _installed(name: str) -> ProcessingPipeline:
    from sigma.plugins import InstalledSigmaPlugins

    known = InstalledSigmaPlugins.autodiscover(include_backends=False, include_validators=False)
    if name not in known.pipelines:
        names: Sequence[str] = sorted([*_OURS, *known.pipelines])
        raise InputError(
            f"there is no pipeline {name!r}; there are: {', '.join(names)}"
            f"{did_you_mean(name, names)}; pip install a package of pySigma's for others, or give"
            " the path of a YAML file"
        )
    made = known.pipelines[name]
    return made() if callable(made) else made
