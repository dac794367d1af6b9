"""Selection of the next token: pure functions of a step's output."""
