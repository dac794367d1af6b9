"""Models as an OCI image: what `python -m export package` writes, and what registries are asked for.

Each layer is one bundle as `<model>/<version>/`, so that the image, mounted as a volume, is a repository of models.
https://github.com/opencontainers/image-spec
"""

INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"

# Runtimes that select by platform skip an image that names none; the layers are the same for all.
PLATFORMS = ("amd64", "arm64")  # of linux

# Annotations of a layer, beside `LICENCES`.
MODEL = "dragoman.model"  # the folder's name
VERSION = "dragoman.version"
PRECISION = "dragoman.precision"
MANIFEST_SHA256 = "dragoman.manifest.sha256"  # of the bundle's manifest.json, which has the checksums of its files
CHECKPOINT_SHA256 = "dragoman.checkpoint.sha256"

# Annotations of OCI itself.
LICENCES = "org.opencontainers.image.licenses"
TITLE = "org.opencontainers.image.title"
DESCRIPTION = "org.opencontainers.image.description"
REFERENCE = "org.opencontainers.image.ref.name"

NOTICE_NAME = "NOTICE"  # beside the bundle's files: the attribution that its licence asks for
