"""The friendships: order and direction do not matter, gaps and strangers are errors."""

from pathlib import Path

import numpy as np
import pytest

from shuffledp.core.errors import DataError
from shuffledp.datasets.fetching import sha256_of
from shuffledp.datasets.twitch import (
    EDGES_FILE,
    TARGETS_FILE,
    edge_list,
    load_twitch,
)

DATA = Path(__file__).parents[3] / "shared" / "data"
TARGETS = "id,days,mature,views,partner,new_id\n7,1,True,1,False,1\n8,1,False,1,False,0\n"


def write(folder, edges, targets=TARGETS):
    (folder / "musae_DE_edges.csv").write_text(edges)
    (folder / "musae_DE_target.csv").write_text(targets)


def test_friends(tmp_path):
    write(tmp_path, "from,to\n1,0\n2,1\n0,1\n", TARGETS + "9,1,True,1,True,2\n")
    friends = load_twitch(tmp_path, fetch=True)  # they are there, so nothing is downloaded
    assert friends.num_users == 3
    assert friends.edges.tolist() == [[0, 1], [1, 2]]
    assert friends.mature.tolist() == [0, 1, 1]
    assert friends.first(2).edges.tolist() == [[0, 1]]
    assert friends.first(2).mature.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("edges", "targets", "message"),
    [
        ("from,to\n0,1\n1,2\n", TARGETS, "edge of streamer 2, but there are 2"),
        ("from,to\n0,-1\n", TARGETS, "edge of streamer 1, but there are 2"),
        ("from,to\n0,one\n", TARGETS, "is no list of edges"),
        ("from,to\n0,1\n", "id,mature\n", "no column 'new_id'"),
        ("from,to\n0,1\n", "mature,new_id\n", "0 streamers from 0 without gaps"),
        ("from,to\n0,1\n", "mature,new_id\nTrue,1\n", "1 streamers from 0 without gaps"),
        ("from,to\n0,1\n", "mature,new_id\nTrue,0\nmaybe,1\n", "line 3: needs a whole number"),
        ("from,to\n0,1\n", "mature,new_id\nTrue,first\n", "line 2: needs a whole number"),
    ],
)
def test_bad_files(tmp_path, edges, targets, message):
    write(tmp_path, edges, targets)
    with pytest.raises(DataError, match=message):
        load_twitch(tmp_path)


def test_missing(tmp_path):
    with pytest.raises(DataError, match=r"has no twitch_de_edges.csv or .*--fetch"):
        load_twitch(tmp_path)


def test_the_digest_is_of_the_graph_alone():
    assert edge_list(b"a,b\n3,1\n0,2\n") == edge_list(b"u,v\n0,2\n1,3\n3,1\n")
    with pytest.raises(ValueError, match="unpack"):
        edge_list(b"a,b\n1,2,3\n")


@pytest.mark.skipif(not DATA.exists(), reason="the Twitch graph is not on this machine")
def test_the_real_graph():
    path = DATA / "twitch_de_lcc_edges.csv"
    assert sha256_of(path) == EDGES_FILE.sha256
    assert edge_list(path.read_bytes()) == path.read_bytes()
    assert sha256_of(DATA / "musae_DE_target.csv") == TARGETS_FILE.sha256
    friends = load_twitch(DATA)
    assert (friends.num_users, friends.edges.shape) == (9_498, (153_138, 2))
    assert np.bincount(friends.mature).tolist() == [3_756, 5_742]
