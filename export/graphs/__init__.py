"""The two graphs of a bundle: the Transformer's weights behind the inputs and outputs of `service.bundle.graph_io`."""
