//! `foreread fleet import` when the database or the import is killed, and over TLS.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may panic, and prints skips

mod database;
mod program;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use database::Fleet;
use program::run;

/// A session that blocks imports before their last table until it is dropped.
struct Blocker(Child);

impl Blocker {
    fn start(fleet: &Fleet) -> Self {
        let lock =
            "BEGIN; LOCK TABLE foreread.trial IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(600)";
        let mut psql = Command::new("psql");
        psql.args(["-X", "-q", "-c", lock, "-d", fleet.server.client().unwrap().connection()]);
        let blocker = Self(psql.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        fleet.wait_for("query LIKE 'BEGIN; LOCK%' AND wait_event = 'PgSleep'");
        blocker
    }
}

impl Drop for Blocker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const WAITING: &str = "wait_event_type = 'Lock' AND wait_event = 'relation'";

/// An import that is killed in the middle of its transaction leaves no rows, whether the server or
/// foreread is killed. The next import completes it.
#[test]
fn a_killed_import_leaves_no_half_and_is_completed_by_the_next() {
    let Some(fleet) = Fleet::start() else { return };
    (0..20).for_each(|number| drop(fleet.host(&format!("h{number}"), number, &[128, 256, 512])));
    fleet.json("import hosts/h0");
    let rows = || fleet.sql("SELECT count(*) FROM foreread.survey");
    let end = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {WAITING}");
    let blocker = Blocker::start(&fleet);
    // The server terminates the session, as when it is stopped.
    let mut command = fleet.command("import hosts");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    fleet.wait_for(WAITING);
    fleet.sql(&end);
    let output = child.wait_with_output().unwrap();
    let said = program::text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("connection to server was lost"), "{said}");
    assert_eq!(rows(), "3");
    // foreread itself is killed.
    let mut child = fleet.command("import hosts").spawn().unwrap();
    fleet.wait_for(WAITING);
    child.kill().unwrap();
    child.wait().unwrap();
    fleet.sql(&end);
    assert_eq!(rows(), "3");
    drop(blocker);
    fleet
        .sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
    assert_eq!(fleet.json("import hosts")["storage_rows"], 57);
    assert_eq!(rows(), "60");
}

/// Digest of the content for all hosts, without the times of imports.
const CONTENT: &str = "SELECT md5(string_agg(x, ';' ORDER BY x)) FROM (SELECT (host.name, \
                       device_key, survey.name, read_ahead_kib, origin, findings)::text AS x FROM \
                       foreread.survey JOIN foreread.host USING (host_id)) AS rows";

/// Kills the postmaster, which also ends its sessions, and waits until they have exited.
fn kill_server(fleet: &Fleet) {
    let pid_file = fleet.server.data().join("postmaster.pid");
    let text = fs::read_to_string(&pid_file).unwrap();
    let pid = text.lines().next().unwrap().to_owned();
    let status = Command::new("kill").args(["-KILL", &pid]).status().unwrap();
    assert!(status.success());
    let started = Instant::now();
    let children = format!("/proc/{pid}/task/{pid}/children");
    while fs::read_to_string(&children).is_ok_and(|found| !found.trim().is_empty()) {
        assert!(started.elapsed() < Duration::from_secs(60), "the server does not die");
        sleep(Duration::from_millis(50));
    }
    // The next server would take this file for its own.
    fs::remove_file(&pid_file).unwrap();
}

/// Restarts the server when the sessions of the previous one have released its memory.
fn start_server_again(fleet: &mut Fleet) {
    let started = Instant::now();
    while let Err(error) = fleet.server.start(&[]) {
        assert!(started.elapsed() < Duration::from_secs(60), "{error}");
        sleep(Duration::from_millis(200));
    }
}

/// No row is lost or duplicated if the server is killed in the middle of an import.
#[test]
fn an_import_whose_server_is_killed_is_completed_by_the_next() {
    let Some(mut fleet) = Fleet::start() else { return };
    (0..20).for_each(|number| drop(fleet.host(&format!("h{number}"), number, &[128, 256, 512])));
    fleet.json("import hosts/h0 hosts/h1");
    let blocker = Blocker::start(&fleet);
    let mut command = fleet.command("import hosts");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    fleet.wait_for(WAITING);
    kill_server(&fleet);
    let output = child.wait_with_output().unwrap();
    let said = program::text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let errors = said.lines().filter(|line| line.starts_with("error: ")).count();
    assert!(errors == 1 && said.contains("connection to server was lost"), "{said}");
    drop(blocker);
    start_server_again(&mut fleet);
    assert_eq!(fleet.sql("SELECT count(*) FROM foreread.survey"), "6", "what was committed");
    assert_eq!(fleet.json("import hosts")["storage_rows"], 54);
    let content = fleet.sql(CONTENT);
    assert_eq!(fleet.json("import hosts")["storage_rows"], 0);
    assert_eq!(fleet.sql(CONTENT), content);
    drop(fleet);
    let Some(undisturbed) = Fleet::start() else { return };
    let hosts = |number| drop(undisturbed.host(&format!("h{number}"), number, &[128, 256, 512]));
    (0..20).for_each(hosts);
    undisturbed.json("import hosts");
    assert_eq!(undisturbed.sql(CONTENT), content);
}

/// Creates certificates in a directory: an authority with a server's certificate for `localhost`,
/// and another authority.
fn certificates(directory: &Path) {
    let openssl = |words: &str| {
        let mut command = Command::new("openssl");
        let output = command.args(words.split(' ')).current_dir(directory).output().unwrap();
        assert!(output.status.success(), "{words}: {}", program::text(&output.stderr));
    };
    for name in ["ca", "other"] {
        openssl(&format!(
            "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={name} -keyout {name}.key -out \
             {name}.crt"
        ));
    }
    openssl("req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr");
    openssl(
        "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -out server.crt",
    );
}

/// Returns settings of a server that accepts only TLS connections to this address.
fn tls_only(data: &Path, certificates: &Path, address: &str) -> Vec<(String, String)> {
    let owner = fs::metadata(data).unwrap();
    for name in ["server.key", "server.crt"] {
        let path = data.join(name);
        fs::copy(certificates.join(name), &path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
    let access = "local all all trust\nhostssl all all 127.0.0.0/8 trust\n";
    fs::write(data.join("pg_hba.conf"), access).unwrap();
    let settings = [("ssl", "on"), ("listen_addresses", address)];
    settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

#[test]
fn an_import_over_tls_refuses_servers_that_it_cannot_verify() {
    let directory = tempfile::tempdir().unwrap();
    if Command::new("openssl").arg("version").output().is_err() {
        println!("SKIP: openssl is not installed");
        return;
    }
    certificates(directory.path());
    // The port is that of the socket; no other server uses this address.
    let number = std::process::id();
    let address = format!("127.{}.{}.2", number >> 8 & 0x7f, number & 0xff);
    let started = Fleet::start_with(|data| tls_only(data, directory.path(), &address));
    let Some(fleet) = started else { return };
    fleet.host("a", 1, &[128]);
    let import = |host: &str, settings: &str| {
        let url = format!("postgresql://foreread@{host}/postgres?hostaddr={address}&{settings}");
        run(fleet.command("import hosts").env("FOREREAD_DATABASE", url))
    };
    let authority = |name: &str| format!("sslrootcert={}", directory.path().join(name).display());
    let (ours, other) = (authority("ca.crt"), authority("other.crt"));
    for (host, settings, why) in [
        ("localhost", format!("sslmode=verify-full&{other}"), "certificate verify failed"),
        ("127.0.0.1", format!("sslmode=verify-full&{ours}"), "does not match host name"),
        ("localhost", format!("sslmode=verify-full&{}", authority("none.crt")), "none.crt"),
        ("localhost", "sslmode=disable".to_owned(), "no encryption"),
    ] {
        let (code, out, said) = import(host, &settings);
        let errors = said.lines().filter(|line| line.starts_with("error: ")).count();
        assert!((code, errors) == (1, 1) && said.contains(why), "{settings}: {code} {out}{said}");
        assert!(said.lines().count() <= 3, "{settings}: {said}");
    }
    assert_eq!(
        fleet.sql("SELECT to_regclass('foreread.host') IS NULL"),
        "t",
        "nothing was written"
    );
    let (code, out, said) = import("localhost", &format!("sslmode=verify-full&{ours}"));
    assert!(code == 0 && out.contains("imported: 1 surveys"), "{out}{said}");
    assert_eq!(fleet.sql("SELECT count(*) FROM foreread.survey"), "1");
}
