"""The wiring: builds and starts everything."""
