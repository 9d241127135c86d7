import subprocess
import sys

import pytest

from benchcheck.backends import BACKENDS, ModelSpec, open_backend
from benchcheck.errors import UsageError


def test_an_unknown_backend_is_refused_with_those_that_exist():
    with pytest.raises(UsageError, match="backend 'gpt' does not exist") as raised:
        open_backend("gpt", ModelSpec("scripted"))
    assert all(name in str(raised.value) for name in BACKENDS)


def test_importing_a_backend_imports_no_engine():
    code = (
        "import sys, benchcheck.backends.transformers, benchcheck.backends.scripted;"
        "print([name for name in ('torch', 'transformers', 'huggingface_hub', 'safetensors') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
