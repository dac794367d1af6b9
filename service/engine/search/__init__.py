"""How the next token is chosen: pure functions over what a step gave."""
