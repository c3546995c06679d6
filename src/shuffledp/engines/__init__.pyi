from shuffledp.engines.processes import Processes as Processes
