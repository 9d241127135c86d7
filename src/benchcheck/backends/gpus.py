"""The GPUs of this machine, without loading a driver."""

from collections.abc import Mapping
from pathlib import Path

__all__ = ["visible_gpus"]


def visible_gpus(environment: Mapping[str, str], devices: Path = Path("/dev")) -> list[str]:
    """Return the NVIDIA GPUs that a process may use, as `CUDA_VISIBLE_DEVICES` names them, without loading a driver.

    Without that variable they are counted: CUDA numbers those it is let see from 0, whatever their device files are
    called (a container that was given the sixth GPU has /dev/nvidia5, which is CUDA's 0).
    """
    named = environment.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        names = [name.strip() for name in named.split(",") if name.strip()]
        return names[: names.index("-1")] if "-1" in names else names  # CUDA takes no notice of what follows a -1
    found = [path for path in devices.glob("nvidia[0-9]*") if path.name.removeprefix("nvidia").isdecimal()]
    return [str(number) for number in range(len(found))]
