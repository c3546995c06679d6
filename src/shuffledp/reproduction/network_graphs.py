"""The real graphs of Liew et al., Table 4, read from the user's folder."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from shuffledp.core.errors import DataError, ParameterError
from shuffledp.datasets.fetching import fetch_public_file, find_public_file
from shuffledp.datasets.twitch import EDGES_FILE
from shuffledp.network.graphs.graph import Graph
from shuffledp.network.graphs.graph_files import read_graph
from shuffledp.reproduction.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphFile:
    """An edge list that the user has.

    Parameters
    ----------
    title : str
        In charts.
    names : tuple of str
        File names that it goes by; empty for the Twitch graph, which can be downloaded.
    origin : str
        Where it is from, for messages and captions.
    """

    title: str
    names: tuple[str, ...]
    origin: str


#: By key; web-Google, the fifth of the paper, is not offered: its 855,802 nodes are at SNAP only.
GRAPHS: Mapping[str, GraphFile] = {
    "facebook": GraphFile(
        title="Facebook",
        names=("facebook_lcc_edges.csv", "musae_facebook_edges.csv"),
        origin="MUSAE Facebook pages, Rozemberczki et al., arXiv:1909.13021; at SNAP",
    ),
    "twitch": GraphFile(
        title="Twitch",
        names=(),
        origin="Twitch Germany, Rozemberczki et al., arXiv:1909.13021; at SNAP",
    ),
    "deezer": GraphFile(
        title="Deezer",
        names=("deezer_europe_lcc_edges.csv", "deezer_europe_edges.csv"),
        origin="Deezer Europe, Rozemberczki and Sarkar, arXiv:2005.07959; at SNAP",
    ),
    "enron": GraphFile(
        title="Enron",
        names=("enron_lcc_edges.csv", "Email-Enron.txt", "email-Enron.txt"),
        origin="Enron e-mail, Klimt and Yang 2004; email-Enron at SNAP",
    ),
}


def load_graph(key: str, settings: Settings) -> Graph:
    """Read a graph and take its largest component.

    Parameters
    ----------
    key : str
        Of `GRAPHS`.
    settings : Settings
        Where the data are, and whether to download what is missing (Twitch only).

    Returns
    -------
    Graph
        Connected.

    Raises
    ------
    ParameterError
        If no folder was given.
    DataError
        If the file is not there, or is no list of edges.
    """
    if settings.data is None:
        raise ParameterError(f"the {GRAPHS[key].title} graph is needed: give --data FOLDER")
    graph = read_graph(_path_of(key, settings.data, settings))
    return graph.largest_component()[0]


def _path_of(key: str, folder: Path, settings: Settings) -> Path:
    """Return where the graph's file lies."""
    wanted = GRAPHS[key]
    if key == "twitch":
        if settings.fetch:
            return fetch_public_file(EDGES_FILE, folder, on_progress=settings.on_progress)
        return find_public_file(EDGES_FILE, folder)
    for name in wanted.names:
        if (path := folder / name).is_file():
            return path
    raise DataError(
        f"{folder} has no {' or '.join(wanted.names)}: download it ({wanted.origin}) and put it "
        "there, or ask for other figures with --figure"
    )
