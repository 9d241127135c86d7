"""Frames for a model on a GPU: decoded by worker processes, shipped as bytes, normalised on the device.

One process that decodes in threads feeds an H200 with 4 to 5 videos of 32 frames a second, and the 2B model reads 20.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from itertools import count
from threading import Lock

from benchcheck.backends.decoding import Decoded, Decoders, Lost
from benchcheck.backends.patches import Recipe
from benchcheck.backends.pixels import Patches, UndecodableFrameError
from benchcheck.errors import BackendError

__all__ = ["ShippedFrames"]

Shipment = tuple[tuple[str, ...], Future[list[Patches] | UndecodableFrameError]]


class ShippedFrames:
    """A `pixels.FrameSource` over worker processes; what is started together travels together."""

    def __init__(self, recipe: Recipe, workers: int) -> None:
        self._lock = Lock()
        self._keys = count()
        self._asked: dict[int, Shipment] = {}
        self._started: dict[str, Shipment] = {}
        self._recipe, self._workers = recipe, workers
        self._decoders: Decoders | None = None
        self._failure: BackendError | None = None

    def start(self, paths: Sequence[str]) -> None:
        """See `FrameSource`."""
        fresh = tuple(path for path in dict.fromkeys(paths) if path not in self._started)
        if fresh:
            self._started |= dict.fromkeys(fresh, self._ship(fresh))

    def take(self, paths: Sequence[str]) -> list[Patches | UndecodableFrameError]:
        """See `FrameSource`.

        Raises:
            BackendError: no worker can be started.
        """
        self.start(paths)
        shipments = [(path, self._started.pop(path)) for path in paths]
        return [self._unpack(path, shipment) for path, shipment in shipments]

    def forget(self, paths: Iterable[str] | None = None) -> None:
        """See `FrameSource`."""
        for path in list(self._started) if paths is None else paths:
            self._started.pop(path, None)

    def close(self) -> None:
        """End the workers."""
        if self._decoders:
            self._decoders.close()

    def _ship(self, paths: tuple[str, ...]) -> Shipment:
        """Ask the workers for frames; they start with the first, so that a step of text has none."""
        if self._decoders is None:
            self._decoders = Decoders(self._recipe, self._arrived, workers=self._workers)
        shipment: Shipment = (paths, Future())
        with self._lock:
            if self._failure:  # nobody is left to serve it
                raise self._failure
            key = next(self._keys)
            self._asked[key] = shipment
        self._decoders.submit(key, paths)
        return shipment

    def _unpack(self, path: str, shipment: Shipment) -> Patches | UndecodableFrameError:
        """Return one frame of a shipment; where one of many was broken, ask again for this one alone."""
        paths, future = shipment
        arrived = future.result()
        if isinstance(arrived, UndecodableFrameError) and len(paths) > 1:
            arrived = self._ship((path,))[1].result()
            return arrived if isinstance(arrived, UndecodableFrameError) else arrived[0]
        return arrived if isinstance(arrived, UndecodableFrameError) else arrived[paths.index(path)]

    def _arrived(self, result: Decoded | Lost | BackendError) -> None:
        """Hand a result to who waits for it; called on the workers' threads."""
        if isinstance(result, BackendError):
            with self._lock:
                self._failure = result
                waiting, self._asked = list(self._asked.values()), {}
            for _, future in waiting:
                future.set_exception(result)
            return
        with self._lock:
            _, future = self._asked.pop(result.key)
        if isinstance(result, Lost):
            future.set_result(UndecodableFrameError(result.detail, result.kind))
            return
        frames, row = [], 0
        for frame in result.frames:
            end = row + frame.height * frame.width
            # Copied, since the memory is the workers' again as soon as it is released.
            frames.append(Patches(result.patches[row:end].copy(), (frame.height, frame.width)))
            row = end
        assert self._decoders is not None
        self._decoders.release(result)
        future.set_result(frames)
