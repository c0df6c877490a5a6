"""Tests that take long: they run where the environment has HEDGEROW_SLOW."""

from __future__ import annotations

import os

import pytest

ALL = "HEDGEROW_SLOW" in os.environ
slow = pytest.mark.skipif(not ALL, reason="set HEDGEROW_SLOW=1 for tests that take long")
