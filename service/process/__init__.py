"""Processes: their phases, heartbeat, event loop, ports and standard streams; forked ones and their supervision."""
