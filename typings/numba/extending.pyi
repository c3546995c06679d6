"""Making a compiled function out of LLVM instructions."""

from collections.abc import Callable
from typing import Any

def intrinsic(function: Callable[..., Any]) -> Callable[..., Any]: ...
