"""Runs foreread for the modules."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json

# Exit code of foreread: not permitted or not supported on this host.
NOT_POSSIBLE = 6

# The option that all modules have; plugins/doc_fragments describes it.
EXECUTABLE = {"executable": {"type": "str", "default": "foreread"}}


def run(module, words, allowed=(0,)):
    """The JSON that foreread prints; fails the module with foreread's own message."""
    command = [module.get_bin_path(module.params["executable"], required=True)] + words
    code, out, said = module.run_command(command, environ_update={"LC_ALL": "C.UTF-8"})
    if code not in allowed:
        lines = [line for line in said.splitlines() if line.startswith(("error: ", "hint: "))]
        module.fail_json(
            msg="; ".join(lines) or said.strip() or "foreread exited with %d" % code,
            rc=code,
            cmd=command,
            unsupported=code == NOT_POSSIBLE,
        )
    try:
        return json.loads(out)
    except ValueError as error:
        module.fail_json(msg="foreread printed no JSON: %s" % error, cmd=command, stdout=out)
