"""Public data sets that the demo and the reproduced figures run on."""
