"""benchcheck finds the items of a video benchmark that can be answered without watching.

Importing this package imports nothing heavy and does nothing; each public name is loaded when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchcheck.demo.controls import make_controls as make_controls
    from benchcheck.errors import BenchcheckError as BenchcheckError
    from benchcheck.pool.building.build import build_pool as build_pool
    from benchcheck.pool.checking.check import check_pool as check_pool
    from benchcheck.pool.items import Item as Item
    from benchcheck.report.assemble import assemble as assemble
    from benchcheck.report.page import write_report as write_report
    from benchcheck.report.tables import open_results as open_results
    from benchcheck.run.driver import run_study as run_study
    from benchcheck.run.plan import survey as survey
    from benchcheck.study import Study as Study
    from benchcheck.transfer.merge import merge_returns as merge_returns
    from benchcheck.transfer.original.importing import import_pool as import_pool
    from benchcheck.transfer.pack import pack_returns as pack_returns
    from benchcheck.transfer.package import make_package as make_package
    from benchcheck.video.making.extract import extract_frames as extract_frames
    from benchcheck.video.preparing.prepare import prepare_videos as prepare_videos
    from benchcheck.video.preparing.prepared import list_videos as list_videos
    from benchcheck.video.shards.packing import pack_frames as pack_frames
    from benchcheck.video.shards.unpacking import unpack_frames as unpack_frames

__version__ = "0.1.0"

_HOMES = {
    "BenchcheckError": "errors",
    "Item": "pool.items",
    "Study": "study",
    "assemble": "report.assemble",
    "build_pool": "pool.building.build",
    "check_pool": "pool.checking.check",
    "extract_frames": "video.making.extract",
    "import_pool": "transfer.original.importing",
    "list_videos": "video.preparing.prepared",
    "make_controls": "demo.controls",
    "make_package": "transfer.package",
    "merge_returns": "transfer.merge",
    "open_results": "report.tables",
    "pack_frames": "video.shards.packing",
    "pack_returns": "transfer.pack",
    "prepare_videos": "video.preparing.prepare",
    "run_study": "run.driver",
    "survey": "run.plan",
    "unpack_frames": "video.shards.unpacking",
    "write_report": "report.page",
}
"""Public name to the module that holds it; docs/python.md describes each."""

__all__ = [
    "BenchcheckError",
    "Item",
    "Study",
    "assemble",
    "build_pool",
    "check_pool",
    "extract_frames",
    "import_pool",
    "list_videos",
    "make_controls",
    "make_package",
    "merge_returns",
    "open_results",
    "pack_frames",
    "pack_returns",
    "prepare_videos",
    "run_study",
    "survey",
    "unpack_frames",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'benchcheck' has no attribute {name!r}. Public: {', '.join(_HOMES)}")
    value = getattr(importlib.import_module(f"benchcheck.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, for completion in a notebook."""
    return sorted([*_HOMES, "__version__"])
