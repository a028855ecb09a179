"""Writes a wheel that installs one program: wheel.py PROGRAM VERSION ARCH README DIRECTORY.

A static binary runs on glibc and on musl, so the wheel has the tags of both.
"""

import base64
import hashlib
import os
import sys
import time
import zipfile

program, version, arch, readme, directory = sys.argv[1:]
tags = [f"manylinux_2_17_{arch}", f"manylinux2014_{arch}", f"musllinux_1_1_{arch}"]
name = f"foreread-{version}"
info = f"{name}.dist-info"
stamp = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]

metadata = f"""Metadata-Version: 2.1
Name: foreread
Version: {version}
Summary: Measure, set and adapt the read-ahead of Linux storage
License: Apache-2.0 OR MIT
Project-URL: Source, https://github.com/foreread/foreread
Classifier: Operating System :: POSIX :: Linux
Description-Content-Type: text/markdown

"""
with open(readme, encoding="utf-8") as text:
    metadata += text.read()
wheel = "Wheel-Version: 1.0\nGenerator: foreread\nRoot-Is-Purelib: false\n"
wheel += "".join(f"Tag: py3-none-{tag}\n" for tag in tags)
with open(program, "rb") as binary:
    files = {f"{name}.data/scripts/foreread": (binary.read(), 0o755)}
files[f"{info}/METADATA"] = (metadata.encode(), 0o644)
files[f"{info}/WHEEL"] = (wheel.encode(), 0o644)

record = ""
for path, (data, _) in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record += f"{path},sha256={digest},{len(data)}\n"
record += f"{info}/RECORD,,\n"
files[f"{info}/RECORD"] = (record.encode(), 0o644)

path = os.path.join(directory, f"{name}-py3-none-{'.'.join(tags)}.whl")
with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    for file, (data, mode) in files.items():
        entry = zipfile.ZipInfo(file, stamp)
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, data)
