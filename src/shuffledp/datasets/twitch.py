"""Twitch Germany: friendships are public, whether a streamer uses explicit language is private."""

import csv
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shuffledp.core.errors import DataError
from shuffledp.core.progress import Progress
from shuffledp.datasets.fetching import (
    PublicFile,
    fetch_public_file,
    find_public_file,
    require_header,
)

_HOME = (
    "https://raw.githubusercontent.com/benedekrozemberczki/datasets/"
    "032d50167c8682c456cb498e0ecad6201fe14844/twitch/DE/"
)
_LICENCE = (
    'Rozemberczki, Allen, Sarkar, "Multi-scale attributed node embedding", arXiv:1909.13021; '
    "benedekrozemberczki/datasets, MIT licence; also at SNAP"
)


def edge_list(content: bytes) -> bytes:
    r"""Return an edge list in the one form that its digest is of.

    Parameters
    ----------
    content : bytes
        A header and one ``a,b`` a line, in any order and direction.

    Returns
    -------
    bytes
        ``u,v``, then each undirected edge once, ``u < v``, in increasing order; so the digest
        depends on the graph alone.

    Raises
    ------
    ValueError
        If a line is no edge.

    Examples
    --------
    >>> edge_list(b"from,to\n7,2\n0,3\n2,7\n")
    b'u,v\n0,3\n2,7\n'
    """
    edges = set()
    for line in content.decode("ascii").splitlines()[1:]:
        first, second = map(int, line.split(","))
        edges.add((min(first, second), max(first, second)))
    return b"u,v\n" + b"".join(b"%d,%d\n" % edge for edge in sorted(edges))


EDGES_FILE: Final = PublicFile(
    name="twitch_de_edges.csv",
    other_names=("twitch_de_lcc_edges.csv", "musae_DE_edges.csv", "DE_edges.csv"),
    url=_HOME + "DE_edges.csv",
    num_bytes=1_499_865,
    sha256="bee1f8d090a3bd7d18ef7199ac0abc60154d5f410225ce3dd1d1327e0b94a246",
    licence=_LICENCE,
    kept_form=edge_list,
)

TARGETS_FILE: Final = PublicFile(
    name="musae_DE_target.csv",
    other_names=("DE_target.csv",),
    url=_HOME + "DE_target.csv",
    num_bytes=338_721,
    sha256="2188f58a093bb9db363d3eaf7c3a52c2adc8ff6b23cbcb4f53875f87061c0321",
    licence=_LICENCE,
)

#: Answers to "does the streamer use explicit language?", by code.
MATURE: Final = ("no", "yes")

_TRUTHS: Final = {"False": 0, "True": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class TwitchFriends:
    """Streamers and their friendships.

    Parameters
    ----------
    edges : ndarray of int64, shape (m, 2)
        Pairs of friends, each once; public.
    mature : ndarray of uint8, shape (n,)
        Index into `MATURE`; private.
    """

    edges: NDArray[np.int64]
    mature: NDArray[np.uint8]

    def __post_init__(self) -> None:
        for each in (self.edges, self.mature):
            each.setflags(write=False)

    @property
    def num_users(self) -> int:
        """Number of streamers."""
        return int(self.mature.size)

    def first(self, count: int) -> "TwitchFriends":
        """Return the first ``count`` streamers and the friendships among them."""
        kept = (self.edges < count).all(axis=1)
        return TwitchFriends(edges=self.edges[kept], mature=self.mature[:count])


def load_twitch(
    folder: str | os.PathLike[str], *, fetch: bool = False, on_progress: Progress | None = None
) -> TwitchFriends:
    """Read the graph and the private answers from a folder.

    Parameters
    ----------
    folder : str or path-like
        Has the two files, under one of the names that they go by.
    fetch : bool
        Download the files that are not there.
    on_progress : callable, optional
        Called while downloading.

    Returns
    -------
    TwitchFriends
        9,498 streamers and 153,138 friendships, if they are the files of MUSAE.

    Raises
    ------
    DataError
        If a file is missing, or is not as it should be.
    """
    if fetch:
        edges_path = fetch_public_file(EDGES_FILE, folder, on_progress=on_progress)
        targets_path = fetch_public_file(TARGETS_FILE, folder, on_progress=on_progress)
    else:
        edges_path = find_public_file(EDGES_FILE, folder)
        targets_path = find_public_file(TARGETS_FILE, folder)
    mature = _read_mature(targets_path)
    return TwitchFriends(edges=_read_edges(edges_path, mature.size), mature=mature)


def _read_edges(path: Path, num_users: int) -> NDArray[np.int64]:
    """Return the friendships, each once."""
    try:
        edges = np.loadtxt(
            edge_list(path.read_bytes()).decode().splitlines(),
            dtype=np.int64,
            delimiter=",",
            skiprows=1,
            ndmin=2,
        )
    except ValueError:
        raise DataError(f"{path.name} is no list of edges: give lines like 0,9206") from None
    if edges.min() < 0 or edges.max() >= num_users:
        raise DataError(
            f"{path.name} has an edge of streamer {max(edges.max(), -edges.min()):,}, but there "
            f"are {num_users:,}: do the two files belong together?"
        )
    return edges


def _read_mature(path: Path) -> NDArray[np.uint8]:
    """Return the private answers, in the order of the graph's numbers."""
    require_header(path, ("mature", "new_id"))
    with path.open(encoding="utf-8-sig", newline="") as file:
        return _answers(csv.DictReader(file), path.name)


def _answers(lines: Iterable[dict[str, str]], name: str) -> NDArray[np.uint8]:
    """Return the answers by streamer's number."""
    found: dict[int, int] = {}
    for number, line in enumerate(lines, start=2):
        try:
            found[int(line["new_id"])] = _TRUTHS[line["mature"]]
        except (KeyError, TypeError, ValueError):
            raise DataError(
                f"{name}, line {number:,}: needs a whole number new_id, and mature True or False"
            ) from None
    if not found or sorted(found) != list(range(len(found))):
        raise DataError(
            f"{name} does not number its {len(found):,} streamers from 0 without gaps in new_id"
        )
    return np.array([found[index] for index in range(len(found))], dtype=np.uint8)
