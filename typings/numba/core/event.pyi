"""What numba tells listeners of its compilations."""

from typing import Any

class Event:
    data: dict[str, Any]  # of a compilation: "dispatcher", "args" and "return_type"

class Listener:
    def on_start(self, event: Event) -> None: ...
    def on_end(self, event: Event) -> None: ...

def register(kind: str, listener: Listener) -> None: ...
