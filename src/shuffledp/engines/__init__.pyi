from shuffledp.engines import spark as spark
from shuffledp.engines.processes import Processes as Processes
