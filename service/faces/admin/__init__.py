"""The status page, and operators' actions over HTTP."""
