"""Public data sets: found in a folder of the user's, or downloaded into it and checked.

Nothing is downloaded unless the user asks for it, and what arrives is compared with a SHA-256 that
is written here before it is kept.
"""

import hashlib
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

import shuffledp as sdp
from paper import Settings
from shuffledp.core.errors import DataError

_TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicFile:
    """A file that is public elsewhere, and what it must be."""

    names: tuple[str, ...]  # what it is called in the user's folder; the first after a download
    licence: str
    url: str = ""  # empty where it cannot be downloaded
    num_bytes: int = 0
    sha256: str = ""  # of what is kept
    kept_form: Callable[[bytes], bytes] = bytes  # what is kept of the bytes that arrive


def edge_list(content: bytes) -> bytes:
    r"""Return each undirected edge once, in increasing order, so that the graph alone counts.

    >>> edge_list(b"from,to\n7,2\n0,3\n2,7\n")
    b'u,v\n0,3\n2,7\n'
    """
    pairs = (map(int, line.split(",")) for line in content.decode("ascii").splitlines()[1:])
    edges = sorted({(min(a, b), max(a, b)) for a, b in pairs})
    return b"u,v\n" + b"".join(b"%d,%d\n" % edge for edge in edges)


_MUSAE = "Rozemberczki, Allen, Sarkar, arXiv:1909.13021, MIT licence; also at SNAP"
_TWITCH = (
    "https://raw.githubusercontent.com/benedekrozemberczki/datasets/"
    "032d50167c8682c456cb498e0ecad6201fe14844/twitch/DE/"
)
FILES = {
    "adult": PublicFile(
        names=("adult.data",),
        licence="Becker and Kohavi 1996, CC BY 4.0",
        url="https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data",
        num_bytes=3_974_305,
        sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    ),
    "facebook": PublicFile(
        names=("facebook_lcc_edges.csv", "musae_facebook_edges.csv"), licence=_MUSAE
    ),
    "twitch": PublicFile(
        names=(
            *("twitch_de_edges.csv", "twitch_de_lcc_edges.csv"),
            *("musae_DE_edges.csv", "DE_edges.csv"),
        ),
        licence=_MUSAE,
        url=f"{_TWITCH}DE_edges.csv",
        num_bytes=1_499_865,
        sha256="bee1f8d090a3bd7d18ef7199ac0abc60154d5f410225ce3dd1d1327e0b94a246",
        kept_form=edge_list,
    ),
    "twitch answers": PublicFile(
        names=("musae_DE_target.csv", "DE_target.csv"),
        licence=_MUSAE,
        url=f"{_TWITCH}DE_target.csv",
        num_bytes=338_721,
        sha256="2188f58a093bb9db363d3eaf7c3a52c2adc8ff6b23cbcb4f53875f87061c0321",
    ),
    "deezer": PublicFile(
        names=("deezer_europe_lcc_edges.csv", "deezer_europe_edges.csv"),
        licence="Rozemberczki, Sarkar, arXiv:2005.07959; at SNAP",
    ),
    "enron": PublicFile(
        names=("enron_lcc_edges.csv", "Email-Enron.txt", "email-Enron.txt"),
        licence="Klimt, Yang 2004; email-Enron at SNAP",
    ),
}


def path_of(key: str, settings: Settings) -> Path:
    """Return where a file of `FILES` lies, downloaded if that is wanted; or raise `DataError`."""
    wanted = FILES[key]
    if settings.data is None:
        names = " or ".join(wanted.names)
        raise DataError(f"needs {names} ({wanted.licence}): give --data FOLDER")
    for name in wanted.names:
        if (path := settings.data / name).is_file():
            return path
    if settings.fetch and wanted.url:
        return _downloaded(wanted, settings.data)
    how = f"download it with --fetch, or from {wanted.url} " if wanted.url else "get it "
    raise DataError(f"{settings.data} has no {' or '.join(wanted.names)}: {how}({wanted.licence})")


def _downloaded(wanted: PublicFile, folder: Path) -> Path:
    """Download a file, and keep it only if it is the one expected."""
    try:
        # The address is a constant of this module.
        with urllib.request.urlopen(wanted.url, timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310
            kept = wanted.kept_form(response.read(wanted.num_bytes + 1))
    except OSError as error:
        raise DataError(
            f"cannot download {wanted.url}: {error}; without a network, put {wanted.names[0]} "
            "into the folder yourself"
        ) from None
    except ValueError:
        kept = b""
    if hashlib.sha256(kept).hexdigest() != wanted.sha256:
        raise DataError(f"{wanted.url} gives another file than the one expected; nothing was kept")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / wanted.names[0]
    path.write_bytes(kept)
    return path


def load_graph(key: str, settings: Settings) -> sdp.network.Graph:
    """Return the largest component of a graph."""
    return sdp.network.read_graph(path_of(key, settings)).largest_component()[0]


def load_adult(settings: Settings) -> pl.DataFrame:
    """Return age, marital status and income of the people of the UCI Adult census."""
    frame = pl.read_csv(path_of("adult", settings), has_header=False, infer_schema=False)
    return frame.select(
        age=pl.nth(0).str.strip_chars().cast(pl.Int64),
        marital_status=pl.nth(5).str.strip_chars(),
        income=pl.nth(14).str.strip_chars(),
    ).drop_nulls()


def load_twitch(settings: Settings) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return friendships, each once, and whether each streamer uses explicit language."""
    answers = pl.read_csv(path_of("twitch answers", settings), infer_schema=False)
    answers = answers.with_columns(pl.col("new_id").cast(pl.Int64)).sort("new_id")
    lines = edge_list(path_of("twitch", settings).read_bytes()).decode().splitlines()
    edges = np.loadtxt(lines, dtype=np.int64, delimiter=",", skiprows=1, ndmin=2)
    if answers["new_id"].to_list() != list(range(len(answers))) or edges.max() >= len(answers):
        raise DataError("the streamers of edges and answers differ: do the files belong together?")
    return edges, (answers["mature"] == "True").to_numpy().astype(np.uint8)
