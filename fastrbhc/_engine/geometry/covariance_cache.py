"""Where the geometry of full covariances keeps its cached values.

``clusters.cached`` has d entries per cluster for the log determinants of the leading k × k blocks
of the smoothed covariance, k = 1…d, each relative to the smoothing alone: log det(I + C/ε). The
entries after them have names, as offsets from d.
"""

from __future__ import annotations

LARGEST_EIGENVALUE = 0  # an upper bound of it, smoothing included
NO_EXTENT = 1  # 1 for a cluster without extent, else 0
VOLUME = 2  # the log determinant over d
LOG_DET_ERROR = 3  # how far the log determinant may be off
N_NAMED = 4
