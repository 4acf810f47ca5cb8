"""The machine's units, one file each, in the order in which a token passes them."""
