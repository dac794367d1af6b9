"""What every call shares, whatever its protocol: API keys, quotas, and who may call."""
