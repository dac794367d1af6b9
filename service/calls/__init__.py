"""Call handling shared by all protocols: API keys, quotas and admission."""
