#!/usr/bin/python
"""The module foreread.foreread.state."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: state
short_description: Set storage tunables now and after a reboot
description:
  - Sets tunables with C(foreread apply), keeps them with C(foreread persist), and reads them
    back, in one task.
  - C(foreread rollback all) on the host undoes it.
options:
  settings:
    description: Tunables and their values, with units as foreread takes them.
    type: dict
    required: true
  target:
    description: A path, mount point or device. Not needed for settings of the whole machine.
    type: str
  persist:
    description: Whether to keep the settings after a reboot.
    type: bool
    default: true
  owner:
    description: What keeps the settings, as for C(foreread persist --with).
    type: str
    choices: [udev, sysctl, nfs-conf, tuned, systemd, lvm]
extends_documentation_fragment: foreread.foreread.executable
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
"""

EXAMPLES = r"""
- name: Read-ahead of the database's storage
  foreread.foreread.state:
    target: /srv/db
    settings:
      read_ahead: 1M
"""

RETURN = r"""
writes:
  description: Each file of the kernel, with its value before and after.
  returned: success
  type: list
  elements: dict
files:
  description: The files that keep the settings after a reboot.
  returned: success
  type: list
  elements: str
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.foreread.foreread.plugins.module_utils.foreread import (
    EXECUTABLE,
    run,
)


def text_of(path):
    """What is in a file now; nothing if it does not exist."""
    if not os.path.exists(path):
        return ""
    with open(path, "rb") as file:
        return file.read().decode("utf-8", "replace")


def main():
    module = AnsibleModule(
        argument_spec={
            "settings": {"type": "dict", "required": True},
            "target": {"type": "str"},
            "persist": {"type": "bool", "default": True},
            "owner": {
                "type": "str",
                "choices": ["udev", "sysctl", "nfs-conf", "tuned", "systemd", "lvm"],
            },
            **EXECUTABLE
        },
        supports_check_mode=True,
    )
    settings = module.params["settings"]
    words = ["%s=%s" % (name, settings[name]) for name in sorted(settings)]
    if module.params["target"]:
        words += ["--on", module.params["target"]]
    apply, persist = ["apply", "--json"] + words, ["persist", "--json"] + words
    if module.params["owner"]:
        persist += ["--with", module.params["owner"]]

    writes = run(module, apply + ["--dry-run"])["writes"]
    wrong = [write for write in writes if write["changes"]]
    files = []
    if module.params["persist"]:
        files = run(module, persist + ["--dry-run"])["files"]
    outdated = [file for file in files if text_of(file["path"]) != file["text"]]
    diff = [
        {
            "before_header": write["file"],
            "after_header": write["file"],
            "before": "%s\n" % write["before"],
            "after": "%s\n" % write["after"],
        }
        for write in wrong
    ]
    diff += [
        {
            "before_header": file["path"],
            "after_header": file["path"],
            "before": text_of(file["path"]),
            "after": file["text"],
        }
        for file in outdated
    ]
    if not module.check_mode:
        if wrong:
            run(module, apply)
        if outdated:
            run(module, persist)
        present = run(module, apply + ["--dry-run"])["writes"]
        left = [write for write in present if write["changes"]]
        if left:
            names = ", ".join("%(file)s is %(before)s, not %(after)s" % write for write in left)
            module.fail_json(msg="the settings do not hold: %s" % names, writes=left)
    module.exit_json(
        changed=bool(wrong or outdated),
        diff=diff,
        writes=writes,
        files=[file["path"] for file in files],
    )


if __name__ == "__main__":
    main()
