"""Options that all modules have."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type


class ModuleDocFragment(object):
    DOCUMENTATION = r"""
options:
  executable:
    description: The foreread to run.
    type: str
    default: foreread
"""
