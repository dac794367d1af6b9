"""The part of OpenAI's API by which programs that know no other translate: chats, responses, and models."""
