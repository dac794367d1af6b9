"""Translation of files and tables by models in this process, without a server."""
