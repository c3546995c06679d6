"""Runs docs/notebooks and keeps in them what they show; see `make docs-outputs`."""

import tempfile
from pathlib import Path

import nbclient
import nbformat

NOTEBOOKS = Path(__file__).with_name("notebooks")

for path in sorted(NOTEBOOKS.glob("*.ipynb")):
    notebook = nbformat.read(path, as_version=4)
    metadata = dict(notebook.metadata)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        client = nbclient.NotebookClient(notebook, record_timing=False, resources=resources)
        client.execute()
    notebook.metadata = metadata  # without those of the machine
    nbformat.write(notebook, path)
