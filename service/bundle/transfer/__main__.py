"""`python -m service.bundle.transfer SOURCE DESTINATION`."""

import sys
from pathlib import Path

from service.bundle.errors import BundleError
from service.bundle.transfer.bundles import transfer

if len(sys.argv) != 3:
    sys.exit("usage: python -m service.bundle.transfer FOLDER|URL DESTINATION")
try:
    names = transfer(sys.argv[1], Path(sys.argv[2]))
except (BundleError, OSError) as error:
    sys.exit(f"dragoman: {error}")
print(f"{sys.argv[2]} has {', '.join(names)}; all checksums match")
