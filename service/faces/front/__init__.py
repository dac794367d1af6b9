"""What answers on the HTTP ports of a server of several worker processes: for all of them."""
