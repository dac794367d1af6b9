"""The part of OpenAI's API that programs can translate with: chat completions, responses, and models."""
