from shuffledp.network.account import account_network as account_network
from shuffledp.network.graph import Graph as Graph
from shuffledp.network.mixing import NetworkMixing as NetworkMixing
from shuffledp.network.privacy import network_walk_epsilon as network_walk_epsilon
from shuffledp.network.run import NetworkShuffling as NetworkShuffling
from shuffledp.network.run import read_graph as read_graph
from shuffledp.network.shuffler import NetworkShuffler as NetworkShuffler
from shuffledp.network.walk import RandomWalk as RandomWalk
