"""What can go wrong, as one small tree.

    BenchcheckError                 one line for the user, never a traceback
    ├── UsageError            (2)   a wrong command, config, spec or input file
    │   ├── ConfigError             benchcheck.toml: file, key, value, what is allowed
    │   ├── SpecError               a benchmark spec
    │   ├── InputError              an annotation file that is missing or not what the spec says: file, row, value
    │   │   └── DamagedFileError (1)    one that nothing can be read from, whatever the spec says: cut off, hostile
    │   ├── ModelRefusedError       a checkpoint that cannot be read letter by letter
    │   └── MissingExtraError       a package of an extra is not installed
    └── RunError              (1)   a run that could not go on; what was written stays
        ├── StudyError              a study's own file is missing, damaged or not writable
        └── BackendError            an engine that stopped answering

The number is the exit code. Anything else that is raised is a bug and keeps its traceback.
"""

__all__ = [
    "BackendError",
    "BenchcheckError",
    "ConfigError",
    "DamagedFileError",
    "InputError",
    "MissingExtraError",
    "ModelRefusedError",
    "RunError",
    "SpecError",
    "StudyError",
    "UsageError",
    "first_line",
]


class BenchcheckError(Exception):
    """A failure that a user can understand and mend; `exit_code` is what the command returns."""

    exit_code = 1


class UsageError(BenchcheckError):
    """The command, a config, a spec or an input file is wrong."""

    exit_code = 2


class ConfigError(UsageError):
    """benchcheck.toml holds an unknown key, a wrong type or a value outside what is allowed."""


class SpecError(UsageError):
    """A benchmark spec holds an unknown key or names something that is not there."""


class InputError(UsageError):
    """An annotation file cannot be read as what the spec says it is."""


class DamagedFileError(InputError):
    """An annotation file that breaks while it is read, whatever a spec says of it: cut off, damaged or hostile.

    So is a web page, a pointer or an archive under an annotation file's name. The command was right, so its exit code
    is that of a failed run.
    """

    exit_code = 1


class ModelRefusedError(UsageError):
    """A checkpoint whose option letters cannot be read exactly; the message says why."""


class MissingExtraError(UsageError):
    """A package that an optional part needs is not installed; the message has the pip command."""

    def __init__(self, what: str, extra: str) -> None:
        cure = f"pip install 'benchcheck[{extra}]'"
        if extra == "vllm":
            cure += ", in an environment of its own (docs/engines.md)"
        super().__init__(f"{what} needs packages that are not installed. Cure: {cure}")


class RunError(BenchcheckError):
    """A run could not go on. What was written before stays, and the same command continues."""


class StudyError(RunError):
    """A study's own file is missing, damaged, of another version or not writable."""


class BackendError(RunError):
    """An engine stopped answering or answered something that cannot be read."""


def first_line(error: BaseException) -> str:
    """Return an exception's first line, or its class where it says nothing."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
