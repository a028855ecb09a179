"""Database servers over a data directory, for as long as a `with` block lasts."""

import contextlib
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import time

QUIET = {"stdout": subprocess.DEVNULL, "check": True}
PARTS = ["shared_buffers=32MB", "fsync=off", "autovacuum=off", "jit=off", "max_wal_size=2GB"]
PARTS += ["client_min_messages=warning"]


@contextlib.contextmanager
def postgres(cluster, new=False):
    """Yields a function that runs a line of SQL, or a client with its options."""
    cluster = os.path.abspath(cluster)
    programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
    socket = tempfile.mkdtemp()
    as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    connection = ["-h", socket, "-U", "postgres"]

    def run(*line):
        subprocess.run([*as_user, f"{programs}/{line[0]}", *line[1:]], cwd="/", **QUIET)

    def sql(line, client="psql"):
        if client == "psql":
            run("psql", "-q", *connection, "-v", "ON_ERROR_STOP=1", "-c", line)
        else:
            run(client, *connection, *line.split())

    shutil.chown(socket, "postgres")
    if new:
        os.mkdir(cluster)
        shutil.chown(cluster, "postgres")
        run("initdb", "-A", "trust", "-U", "postgres", "-D", cluster)
    settings = [f"-c {part}" for part in [*PARTS, f"unix_socket_directories={socket}"]]
    options = " ".join([*settings, "-c listen_addresses=''"])
    run("pg_ctl", "-w", "-D", cluster, "-l", f"{socket}/log", "-o", options, "start")
    try:
        yield sql
    finally:
        run("pg_ctl", "-w", "-D", cluster, "-m", "fast", "stop")
        shutil.rmtree(socket)


@contextlib.contextmanager
def mariadb(cluster, new=False):
    """Yields a function that runs a line of SQL; InnoDB reads through the page cache."""
    cluster, directory = os.path.abspath(cluster), tempfile.mkdtemp()
    server = ["--no-defaults", f"--datadir={cluster}", "--user=root"]
    if new:
        authentication = "--auth-root-authentication-method=normal"
        line = ["mariadb-install-db", *server, "--skip-test-db", authentication]
        subprocess.run(line, **QUIET)
    caching = ["--innodb-flush-method=fsync", "--innodb-buffer-pool-size=32M", "--skip-networking"]
    files = [f"--socket={directory}/socket", f"--log-error={directory}/log"]
    no_dump = ["--innodb-buffer-pool-dump-at-shutdown=0", "--innodb-buffer-pool-load-at-startup=0"]
    process = subprocess.Popen(["mariadbd", *server, *caching, *no_dump, *files])
    client = ["--no-defaults", f"--socket={directory}/socket", "-u", "root"]
    asking = ["mariadb", *client, "-e"]
    try:
        deadline = time.monotonic() + 60
        while subprocess.run([*asking, "select 1"], capture_output=True).returncode:
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit("mariadbd does not answer")
            time.sleep(0.05)
        yield lambda line: subprocess.run([*asking, line], **QUIET)
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(directory)
