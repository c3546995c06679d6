"""Types of compiled arguments; each, called with argument types, makes a signature."""

from typing import Any

void: Any
voidptr: Any
uint32: Any
uint64: Any
float64: Any
