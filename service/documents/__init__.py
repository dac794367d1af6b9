"""From texts to what a model translates, and back: segments, what is kept from the model, markup, positions."""
