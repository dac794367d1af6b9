"""Who may call, and how much: keys, their file, their quotas, and whose call is at hand. Knows no gRPC."""
