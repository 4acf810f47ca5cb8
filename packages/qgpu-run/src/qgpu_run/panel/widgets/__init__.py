"""The panes of the panel."""
