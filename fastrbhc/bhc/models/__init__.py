"""The conjugate models, one per file; a new module in this directory is found by itself."""

from __future__ import annotations

from fastrbhc._register import import_modules

import_modules(__name__, __path__)
