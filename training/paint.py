"""Frames of a batch: from clips, or painted on the training device with what a codec and a resize would do to them."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from benchcheck.demo import render
from benchcheck.demo.scenes import BACKGROUNDS, CELLS

__all__ = ["Painted", "paint", "to_patches"]

SIZE = 64
JITTER = 0.5
"""Pixels by which a frame's object is off its path, so that places are learned, not pixels."""

Painted = tuple[Tensor, Tensor, Tensor]
"""Patches, colour of every frame, and place of the object in every frame."""


def _cosines(device: torch.device) -> Tensor:
    """Return the matrix of the cosine transform of an 8 by 8 block, over its 64 values in a row."""
    index = torch.arange(8, device=device).float()
    matrix = torch.cos((2 * index[None, :] + 1) * index[:, None] * math.pi / 16) / 2
    matrix[0] /= math.sqrt(2)
    return torch.kron(matrix, matrix)


def _round_in_blocks(plane: Tensor, step: Tensor) -> Tensor:
    """Round the cosine transform of 8 by 8 blocks to multiples of a step, coarser for finer detail, as codecs do."""
    matrix = _cosines(plane.device)
    n, height, width = plane.shape
    blocks = plane.reshape(n, height // 8, 8, width // 8, 8).transpose(2, 3).reshape(n, -1, 64)
    index = torch.arange(8, device=plane.device).float()
    steps = step[:, None, None] * (1 + 0.25 * (index[:, None] + index[None, :])).flatten() + 1e-3
    rough = torch.round(blocks @ matrix.T / steps) * steps
    return (rough @ matrix).reshape(n, height // 8, width // 8, 8, 8).transpose(2, 3).reshape(n, height, width)


def _code(picture: Tensor, step: Tensor) -> Tensor:
    """Return pictures after a codec: luma and half-size chroma, both rounded in blocks. Pictures n by 3 by h by w."""
    weights = torch.tensor([0.299, 0.587, 0.114], device=picture.device)
    luma = (picture * weights[:, None, None]).sum(1)
    chroma = functional.avg_pool2d(picture[:, [0, 2]] - luma[:, None], 2)
    luma = _round_in_blocks(luma, step)
    half = chroma.shape[-1]
    chroma = _round_in_blocks(chroma.reshape(-1, half, half), step.repeat_interleave(2)).reshape(-1, 2, half, half)
    red, blue = functional.interpolate(chroma, scale_factor=2, mode="bilinear", align_corners=False).unbind(1)
    red, blue = luma + red, luma + blue
    green = (luma - weights[0] * red - weights[2] * blue) / weights[1]
    return torch.stack([red, green, blue], 1)


def _objects(batch: dict[str, Tensor], x: Tensor, y: Tensor, edge: Tensor) -> Tensor:
    """Return how much of every pixel the object covers: rows by frames by height by width."""
    side = torch.as_tensor(render.pixel_grid(SIZE), device=x.device)
    across, down = side[None, None, None, :] - x[..., None, None], side[None, None, :, None] - y[..., None, None]
    radius = batch["radius"][:, None, None, None]
    distance = torch.zeros(1, device=x.device)
    for number, measure in enumerate(render.DISTANCES):
        chosen = (batch["shape"] == number)[:, None, None, None]
        distance = torch.where(chosen, measure(torch, across, down, radius), distance)
    return (0.5 - distance * edge[:, None, None, None]).clamp(0, 1)


def to_patches(pictures: Tensor) -> Tensor:
    """Return n by 16 by 768 values in the processor's order of patches, for pictures n by 3 by 64 by 64 of 0 to 255."""
    x = (pictures / 127.5 - 1).reshape(-1, 3, 2, 2, 16, 2, 2, 16)
    return x.permute(0, 2, 5, 3, 6, 1, 4, 7).reshape(pictures.shape[0], 16, 768)


def _with_clips(pictures: Tensor, batch: dict[str, Tensor], clips: Tensor) -> Tensor:
    """Return pictures with those of rows that have a clip taken from it: clips by frames by height by width by 3."""
    frames = clips[batch["clip"].clamp_min(0)[:, None], batch["cells"]].flatten(0, 1).permute(0, 3, 1, 2)
    real = (batch["clip"] >= 0).repeat_interleave(batch["cells"].shape[1])
    return torch.where(real[:, None, None, None], frames.to(pictures.dtype), pictures)


@torch.no_grad()
def paint(batch: dict[str, Tensor], generator: torch.Generator, clips: Tensor | None = None) -> Painted:
    """Return the frames that a batch's cells show: those of rows with a clip from `clips`, painted ones else."""
    cells, device = batch["cells"], batch["cells"].device
    rows, n = cells.shape

    def uniform(*size: int) -> Tensor:
        return torch.rand(*size, device=device, generator=generator)

    motion = [batch["motion"][:, index : index + 1] for index in range(batch["motion"].shape[1])]
    x, y = render.positions(motion, (cells + 0.5) / CELLS, torch)
    jitter = JITTER * uniform(rows, 1, 2) * torch.randn(rows, n, 2, device=device, generator=generator)
    jitter = jitter * (batch["clip"] < 0)[:, None, None]
    x, y = x + jitter[..., 0], y + jitter[..., 1]
    mask = _objects(batch, x, y, 0.7 + 0.9 * uniform(rows))[:, :, None]
    colours = batch["colours"].gather(1, cells)
    rgb = torch.tensor(render.RGB, device=device, dtype=torch.float32)[colours]
    front = render.blend(rgb, batch["clarity"][:, None, None])[..., None, None]
    backs = torch.stack([torch.tensor(render.background(i, SIZE)).permute(2, 0, 1) for i in range(len(BACKGROUNDS))])
    back = backs.to(device)[batch["background"]][:, None]
    pictures = (back + (front - back) * mask).reshape(rows * n, 3, SIZE, SIZE)
    step = (14 * uniform(rows) ** 2).repeat_interleave(n)
    noise = (5 * uniform(rows) ** 2).repeat_interleave(n)[:, None, None, None]
    pictures = _code(pictures, step)
    pictures = pictures + noise * torch.randn(pictures.shape, device=device, generator=generator)
    pictures = pictures.round().clamp(0, 255)
    if clips is not None:
        pictures = _with_clips(pictures, batch, clips)
    patches = to_patches(pictures).reshape(rows, n, 16, -1)
    return patches, colours, torch.stack([x, y], -1)
