"""Are the clusters of a cut real? ``tree.stability`` and ``RBHC.assess`` give the answer.

`ClusterAssessment` is the report, and its documentation says what each number means.
"""

from __future__ import annotations

from fastrbhc.assessment.report import ClusterAssessment

__all__ = ["ClusterAssessment"]
