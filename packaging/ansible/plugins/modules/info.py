#!/usr/bin/python
"""The module foreread.foreread.info."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: info
short_description: Survey the read-ahead of a host
description:
  - Returns the read-ahead of all storage, with origins and findings. Changes nothing.
  - C(foreread fleet import) loads surveys into a database.
options:
  policy:
    description: A policy on the managed host. Its result becomes part of the survey.
    type: path
extends_documentation_fragment: foreread.foreread.executable
attributes:
  check_mode:
    support: full
"""

EXAMPLES = r"""
- name: Survey the host
  foreread.foreread.info:
    policy: /etc/foreread/policy.toml
  register: host
"""

RETURN = r"""
survey:
  description: The survey, as C(foreread fleet survey) prints it.
  returned: success
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.foreread.foreread.plugins.module_utils.foreread import (
    EXECUTABLE,
    run,
)


def main():
    module = AnsibleModule(
        argument_spec={
            "policy": {"type": "path"},
            **EXECUTABLE
        },
        supports_check_mode=True,
    )
    words = ["fleet", "survey"]
    if module.params["policy"]:
        words += ["--policy", module.params["policy"]]
    module.exit_json(changed=False, survey=run(module, words))


if __name__ == "__main__":
    main()
