"""Running counts from sums of reports at the nodes of a dyadic tree: estimates, errors, bands."""
