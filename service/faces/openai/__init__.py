"""The part of OpenAI's API by which programs that know nothing else translate: chat completions, and models."""
