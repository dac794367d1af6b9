"""The server process: ports, phases, heartbeat, standard streams."""
