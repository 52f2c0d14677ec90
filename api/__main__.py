"""`python -m dikast`: the same as the `dikast` command."""

import sys

from dikast.entry import main

if __name__ == "__main__":
    sys.exit(main())
