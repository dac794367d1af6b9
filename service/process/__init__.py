"""What the process is and prints: ports, phases, heartbeat, standard streams."""
