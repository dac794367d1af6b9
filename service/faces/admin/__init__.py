"""The status page, and what operators may do over HTTP."""
