"""The server's process: its phases, heartbeat, event loop, memory, ports and standard streams."""
