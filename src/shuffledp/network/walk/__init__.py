"""Random walks of reports, drawn."""
