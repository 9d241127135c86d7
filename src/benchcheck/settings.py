"""Where and how models run: the `[engine]`, `[slurm]` and `[ray]` tables of benchcheck.toml. Pure.

Nothing here changes what is measured, so nothing here is in the step key; rows record the engine that answered.
A flag of the command line wins over an environment variable of the original package (protocol 8), that over the file.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["ENVIRONMENT", "SLURM_OURS", "EngineSettings", "RaySettings", "SlurmSettings", "check", "without_password"]

ENVIRONMENT: Mapping[str, str] = {
    "NGPU": "gpus",
    "WORKERS": "in_flight",
    "PORT0": "first_port",
    "GPU_UTIL": "gpu_memory",
    "MAX_SEQS": "max_sequences",
    "PY": "python",
    "VLLM": "vllm",
}
"""Environment variables of the original package (protocol 8) and the keys of `[engine]` that they set."""

SLURM_OURS = (
    *("account", "array", "chdir", "constraint", "cpus-per-task", "dependency", "error", "gres", "job-name"),
    *("kill-on-invalid-dep", "mem", "no-requeue", "ntasks", "open-mode", "output", "parsable", "partition", "qos"),
    *("requeue", "signal", "test-only", "time", "wait", "wrap"),
)
"""Options of sbatch that the batch script sets or that would break it; sbatch takes a beginning of one for it, too."""

_URL = re.compile(r"https?://(\[[0-9A-Fa-f:.]+\]|[^\s/?#:@\[\]]+)(:[0-9]{1,5})?(/[^\s?#]*)?")
"""Without who logs in: that would stand in the study, in rows, logs and the list of processes."""
_LOGIN = re.compile(r"(?<!\bhf:)//[^\s'\"]*@")
"""Not that of a hub dataset, whose @ stands before a branch: hf://datasets/owner/name@branch."""


def check(holds: bool, key: str, value: object, allowed: str) -> None:
    """Raise a ValueError that names the key, the value and what is allowed, unless `holds`."""
    if not holds:
        raise ValueError(f"{key} = {value!r} is not allowed. Allowed: {allowed}")


def without_password(text: str) -> str:
    """Return a text in which no URL shows who logs in, and with what."""
    return _LOGIN.sub("//***@", text)


def _is_address(url: str) -> bool:
    """Whether a URL leads to a host by a name that can be looked up and a port that there may be."""
    found = _URL.fullmatch(url)
    if found is None or not url.isprintable():
        return False
    try:
        host = found[1].removesuffix(".").encode("idna")
    except UnicodeError:
        return False
    return bool(host) and 1 <= int((found[2] or ":1")[1:]) <= 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """How a model is run. 0 or an empty text means the engine's own choice, which docs/engines.md states."""

    endpoints: tuple[str, ...] = ()
    """Base URLs of OpenAI-compatible servers, such as `http://host:8001/v1`; used by the server backend."""
    served_name: str = ""
    """The model's name at those servers, when it is not the config's model."""
    api_key: str = ""
    """Name of the environment variable that holds the endpoints' key; the key itself never stands in a study."""
    in_flight: int = 0
    """Prompts asked at once of one endpoint; 0 is 32, 16 or 8 for text, one frame, many frames."""
    timeout_s: float = 600.0
    """A request that takes longer has hung."""
    gpus: int = 0
    """GPUs to use on this machine; 0 is all that are visible."""
    first_port: int = 8001
    """GPU i is served on this port + i."""
    gpu_memory: float = 0.85
    """Share of a GPU's memory that an engine takes."""
    max_sequences: int = 0
    """Prompts an engine computes at once; 0 is the engine's choice for the step."""
    decode_workers: int = 0
    """CPU processes that decode frames for one engine on a GPU; 0 is half of the cores, 1 to 6."""
    quantization: str = ""
    """Empty, or `fp8`: faster, with other numerics; `benchcheck doctor` measures how far they differ."""
    python: str = ""
    """Interpreter that has vLLM, when it is not this one."""
    vllm: str = ""
    """Command that starts vLLM, when it is not `vllm`."""

    def __post_init__(self) -> None:
        """Refuse values that no engine can use."""
        for endpoint in self.endpoints:
            allowed = "URLs such as http://host:8001/v1, without a login; `api_key` names what holds the key"
            check(_is_address(endpoint), "endpoints", without_password(endpoint), allowed)
        check(0 <= self.in_flight <= 65_536, "in_flight", self.in_flight, "0 (chosen by the step) to 65536")
        check(0 < self.timeout_s <= 86_400, "timeout_s", self.timeout_s, "above 0, up to 86400 seconds")
        check(0 <= self.gpus <= 1024, "gpus", self.gpus, "0 (all visible) to 1024")
        check(1 <= self.first_port <= 65_535, "first_port", self.first_port, "1 to 65535")
        check(0 < self.gpu_memory <= 1, "gpu_memory", self.gpu_memory, "above 0, up to 1 (a share)")
        check(0 <= self.max_sequences <= 65_536, "max_sequences", self.max_sequences, "0 (chosen) to 65536")
        check(0 <= self.decode_workers <= 256, "decode_workers", self.decode_workers, "0 (by the cores) to 256")
        check(self.quantization in ("", "fp8"), "quantization", self.quantization, "'' or 'fp8'")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmSettings:
    """What a Slurm batch script asks for: written by `benchcheck screen --executor slurm`."""

    partition: str = ""
    account: str = ""
    qos: str = ""
    tasks: int = 8
    """Tasks of each step's array; each takes its share of the units."""
    at_once: int = 0
    """Tasks of an array that may run at a time; 0 is all."""
    gpus_per_task: int = 1
    cpus_per_task: int = 8
    memory: str = "64G"
    time: str = "12:00:00"
    constraint: str = ""
    setup: tuple[str, ...] = ()
    """Shell lines that run before the command, such as `source .venv/bin/activate`."""
    options: tuple[str, ...] = ()
    """Further lines behind `#SBATCH`, such as `--exclude=node7`."""

    def __post_init__(self) -> None:
        """Refuse values that could not stand in a batch script, or that would change it elsewhere than meant."""
        names = r"[A-Za-z0-9][A-Za-z0-9_.,@-]*"
        for key, pattern, allowed in (
            ("partition", names, "letters, digits and _ . , @ -"),
            ("account", names, "letters, digits and _ . , @ -"),
            ("qos", names, "letters, digits and _ . , @ -"),
            ("constraint", r"[A-Za-z0-9_.,|&()\[\]*:-]+", "features joined by & | , such as a100&nvlink"),
            ("memory", r"[1-9][0-9]*[KMGT]?", "a number with K, M, G or T, such as 64G"),
            ("time", r"[0-9]+(:[0-9]{1,2}){0,2}|[0-9]+-[0-9]{1,2}(:[0-9]{1,2}){0,2}", "such as 12:00:00 or 2-00:00:00"),
        ):
            value = getattr(self, key)
            check(not value or re.fullmatch(pattern, value) is not None, key, value, f"{allowed}, or nothing")
        check(1 <= self.tasks <= 1_000_000, "tasks", self.tasks, "1 to 1000000")
        check(0 <= self.at_once <= 1_000_000, "at_once", self.at_once, "0 (all) to 1000000")
        check(0 <= self.gpus_per_task <= 64, "gpus_per_task", self.gpus_per_task, "0 to 64")
        check(1 <= self.cpus_per_task <= 1024, "cpus_per_task", self.cpus_per_task, "1 to 1024")
        for line in self.setup:
            check(bool(line.strip()) and line.isprintable(), "setup", line, "shell commands, one line each")
        for line in self.options:
            found = re.fullmatch(r"--([a-z][a-z0-9-]*)(=[^\s\"'\\#]+)?", line)
            allowed = "options such as --exclude=node7, without blanks, quotes and #"
            check(found is not None and line.isprintable(), "options", line, allowed)
            ours = [own for own in SLURM_OURS if found is not None and own.startswith(found[1])]
            check(not ours, "options", line, f"anything but --{', --'.join(SLURM_OURS)}, which have keys or are ours")


@dataclass(frozen=True, slots=True, kw_only=True)
class RaySettings:
    """How a Ray cluster is used."""

    address: str = ""
    """Empty is a local cluster made for the run; `auto` or `host:port` an existing one."""
    gpus_per_actor: float = 1.0
    """0 runs without GPUs."""
    cpus_per_actor: float = 1.0
    actors: int = 0
    """Actors, each with an engine of its own; 0 is one per GPU of the cluster, or per CPU where none takes a GPU."""
    retries: int = 3
    """How often a unit is given out again after its actor or node was lost."""

    def __post_init__(self) -> None:
        """Refuse what no cluster has."""
        check(re.fullmatch(r"|auto|[^\s]+:[0-9]{1,5}", self.address) is not None, "address", self.address,
              "'' (a local cluster), auto, or host:port")  # fmt: skip
        check(0 <= self.gpus_per_actor <= 64, "gpus_per_actor", self.gpus_per_actor, "0 (no GPU) to 64")
        check(0 < self.cpus_per_actor <= 1024, "cpus_per_actor", self.cpus_per_actor, "above 0, up to 1024")
        check(0 <= self.actors <= 10_000, "actors", self.actors, "0 (one per GPU) to 10000")
        check(0 <= self.retries <= 1000, "retries", self.retries, "0 to 1000")
