"""What each pane shows, as lines of text with roles; no terminal is needed to make them."""
