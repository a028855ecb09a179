//! The Ansible collection, run by a real Ansible against hosts of this machine.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may panic, and prints skips

mod program;

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use program::{Scratch, run};
use serde_json::Value;
use testkit::file_device::FileDevice;
use testkit::host_tree::{HostTree, TreeDisk};

/// A directory with the collection, an inventory and playbooks.
struct Playground {
    scratch: Scratch,
    ansible: PathBuf,
}

impl Playground {
    /// Returns `None`, after printing the reason, if Ansible is missing.
    fn new() -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        let ansible = root.join("target/venv/bin/ansible-playbook");
        if !ansible.is_file() {
            println!("SKIP: no ansible-playbook in target/venv; scripts/deps installs it");
            return None;
        }
        let scratch = Scratch::new();
        let collections = scratch.path().join("collections/ansible_collections/foreread");
        fs::create_dir_all(&collections).unwrap();
        symlink(root.join("packaging/ansible"), collections.join("foreread")).unwrap();
        Some(Self { scratch, ansible })
    }

    /// Runs one module on all hosts, and prints its results; returns the exit code, the output, and
    /// how many hosts changed.
    fn play(&self, module: &str, options: &str, arguments: &str) -> (i32, String, usize) {
        let program = assert_cmd::cargo::cargo_bin!("foreread");
        let tasks = format!(
            "  environment:
    FOREREAD_CONFIG: ''
    FOREREAD_ROOT: \"{{{{ tree | default('') }}}}\"
    FOREREAD_STATE_DIR: {state}/{{{{ inventory_hostname }}}}
    FOREREAD_RUNTIME_DIR: {state}/{{{{ inventory_hostname }}}}/run
  tasks:
    - foreread.foreread.{module}: {{executable: '{program}', {options}}}
      register: result
    - ansible.builtin.debug: {{var: result}}
",
            state = self.scratch.path().join("state").display(),
            program = program.display(),
        );
        let (code, out) = self.playbook(&tasks, arguments);
        let changed = out.matches("changed=1").count();
        (code, out, changed)
    }

    /// Runs a play with these tasks on all hosts; returns the exit code and the output.
    fn playbook(&self, tasks: &str, arguments: &str) -> (i32, String) {
        self.scratch.file("play.yml", format!("- hosts: all\n  gather_facts: false\n{tasks}"));
        let mut command = Command::new(&self.ansible);
        command
            .current_dir(self.scratch.path())
            .env("ANSIBLE_COLLECTIONS_PATH", self.scratch.path().join("collections"))
            .env("ANSIBLE_LOCAL_TEMP", self.scratch.path().join("tmp"))
            .env("ANSIBLE_REMOTE_TEMP", self.scratch.path().join("tmp"))
            .env("ANSIBLE_NOCOLOR", "1")
            .env("LC_ALL", "C.UTF-8")
            .args(["-i", "inventory", "-f", "4", "play.yml"])
            .args(arguments.split_whitespace());
        let (code, out, said) = run(&mut command);
        (code, out + &said)
    }

    fn inventory(&self, hosts: &str) {
        let python = self.ansible.with_file_name("python");
        let all = format!(
            "[all:vars]\nansible_connection=local\nansible_python_interpreter={}\n",
            python.display()
        );
        self.scratch.file("inventory", format!("[local]\n{hosts}{all}"));
    }
}

/// Returns a host's result in the output of a play.
fn result(out: &str, host: &str) -> Value {
    let printed = out.rsplit(&format!("ok: [{host}] => ")).next().unwrap();
    let mut values = serde_json::Deserializer::from_str(printed).into_iter::<Value>();
    values.next().unwrap().unwrap()["result"].take()
}

#[test]
fn surveys_of_many_hosts_come_back_and_change_nothing() {
    let Some(ground) = Playground::new() else { return };
    let mut hosts = String::new();
    for number in 0..12 {
        let path = ground.scratch.path().join(format!("tree{number}"));
        let mut tree = HostTree::new(&path, "host", &format!("{number:032x}")).unwrap();
        let disk = TreeDisk { index: 0, read_ahead_kib: 128, mount: "/srv", wwn: "eui.1" };
        tree.disk(&disk).unwrap();
        let _ = writeln!(hosts, "h{number} tree={}", path.display());
    }
    ground.inventory(&hosts);
    let (code, out, changed) = ground.play("info", "", "");
    assert_eq!((code, changed), (0, 0), "{out}");
    let survey = &result(&out, "h7")["survey"];
    assert_eq!(survey["storage"][0]["key"], "wwn:eui.1", "{survey}");
    assert_eq!(survey["storage"][0]["read_ahead_kib"], 128);
    let ids: std::collections::BTreeSet<String> = (0..12)
        .map(|n| result(&out, &format!("h{n}"))["survey"]["host"]["id"].to_string())
        .collect();
    assert_eq!(ids.len(), 12);
}

fn read_ahead(device: &FileDevice) -> String {
    fs::read_to_string(device.queue("read_ahead_kb")).unwrap().trim().to_owned()
}

#[test]
fn host_a_second_run_changes_nothing_and_check_mode_writes_nothing() {
    let name = "host_a_second_run_changes_nothing_and_check_mode_writes_nothing";
    if !Path::new("/proc/self/fd").exists() || fs::metadata("/dev/loop-control").is_err() {
        return println!("SKIP {name}: no loop devices");
    }
    let Some(ground) = Playground::new() else { return };
    ground.scratch.file("disk", vec![0; 1 << 20]);
    let device = match FileDevice::attach(&ground.scratch.path().join("disk")) {
        Ok(device) => device,
        Err(why) => return println!("SKIP {name}: {why}"),
    };
    fs::write(device.queue("read_ahead_kb"), "64").unwrap();
    ground.inventory("here\n");
    let options = format!(
        "target: {}, settings: {{read_ahead: 256K}}, persist: false",
        device.path().display()
    );
    let (code, out, changed) = ground.play("state", &options, "--check --diff");
    assert_eq!((code, changed, read_ahead(&device).as_str()), (0, 1, "64"), "{out}");
    assert!(out.contains("-64\n") && out.contains("+256\n"), "{out}");
    let (code, out, changed) = ground.play("state", &options, "");
    assert_eq!((code, changed, read_ahead(&device).as_str()), (0, 1, "256"), "{out}");
    for arguments in ["", "--check"] {
        let (code, out, changed) = ground.play("state", &options, arguments);
        assert_eq!((code, changed, read_ahead(&device).as_str()), (0, 0, "256"), "{out}");
    }
    // Another program changes the setting; the next run sets it again.
    fs::write(device.queue("read_ahead_kb"), "64").unwrap();
    let (code, out, changed) = ground.play("state", &options, "");
    assert_eq!((code, changed, read_ahead(&device).as_str()), (0, 1, "256"), "{out}");
    // An impossible request fails with foreread's own message, and changes nothing.
    fs::write(device.queue("read_ahead_kb"), "64").unwrap();
    let lasting = options.replace("persist: false", "persist: true, owner: udev");
    let (code, out, _) = ground.play("state", &lasting, "");
    assert_eq!((code, read_ahead(&device).as_str()), (2, "64"), "{out}");
    let reason = match Path::new("/run/udev/data").exists() {
        true => "no serial number",
        false => "this host has no udev database",
    };
    assert!(out.contains("\"unsupported\": true") && out.contains(reason), "{out}");
    let wrong = options.replace("256K", "1X");
    let (code, out, _) = ground.play("state", &wrong, "");
    assert!(code == 2 && out.contains("1X"), "{out}");
    let mut rollback = ground.scratch.foreread("rollback all");
    rollback.env("FOREREAD_STATE_DIR", ground.scratch.path().join("state/here"));
    rollback.env("FOREREAD_RUNTIME_DIR", ground.scratch.path().join("state/here/run"));
    run(&mut rollback);
}

/// Returns the number of hosts: FOREREAD_ANSIBLE_HOSTS, or 3. The tests print their times.
fn hosts() -> usize {
    let asked = std::env::var("FOREREAD_ANSIBLE_HOSTS").ok();
    asked.and_then(|words| words.parse().ok()).unwrap_or(3)
}

/// On hosts with one device each, check mode writes nothing, the first run writes, and the second
/// run changes nothing.
#[test]
fn host_state_on_many_hosts_is_written_once() {
    let name = "host_state_on_many_hosts_is_written_once";
    let Some(ground) = Playground::new() else { return };
    let mut devices = Vec::new();
    let mut inventory = String::new();
    for number in 0..hosts() {
        let file = format!("disk{number}");
        ground.scratch.file(&file, vec![0; 1 << 16]);
        let device = match FileDevice::attach(&ground.scratch.path().join(file)) {
            Ok(device) => device,
            Err(why) => return println!("SKIP {name}: {why}"),
        };
        fs::write(device.queue("read_ahead_kb"), "64").unwrap();
        let _ = writeln!(inventory, "h{number} device={}", device.path().display());
        devices.push(device);
    }
    ground.inventory(&inventory);
    let all = devices.len();
    let options = "target: '{{ device }}', settings: {read_ahead: 256K}, persist: false";
    for (arguments, changed, kib) in
        [("--check --diff", all, "64"), ("", all, "256"), ("", 0, "256")]
    {
        let started = Instant::now();
        let (code, out, found) = ground.play("state", options, arguments);
        println!("{all} hosts {arguments}: {found} changed in {:?}", started.elapsed());
        assert_eq!((code, found), (0, changed), "{out}");
        assert_eq!(out.matches("failed=0").count(), all, "{out}");
        assert!(devices.iter().all(|device| read_ahead(device) == kib), "{arguments}");
        let has_state = ground.scratch.path().join("state").exists();
        assert!(arguments.is_empty() || !has_state, "check mode made a state directory");
    }
    for (number, device) in devices.iter().enumerate() {
        let state = ground.scratch.path().join(format!("state/h{number}"));
        let mut rollback = ground.scratch.foreread("rollback all");
        rollback.env("FOREREAD_STATE_DIR", &state);
        run(rollback.env("FOREREAD_RUNTIME_DIR", state.join("run")));
        assert_eq!(read_ahead(device), "64", "rolled back");
    }
}

/// The role on several hosts: the first run copies binary and policy, the second copies nothing.
#[test]
fn the_role_installs_on_several_hosts_once() {
    let Some(ground) = Playground::new() else { return };
    let homes: Vec<PathBuf> =
        (0..hosts()).map(|number| ground.scratch.path().join(format!("home{number}"))).collect();
    let mut inventory = String::new();
    for (number, home) in homes.iter().enumerate() {
        fs::create_dir_all(home.join("bin")).unwrap();
        let _ = writeln!(inventory, "h{number} home={}", home.display());
    }
    ground.inventory(&inventory);
    ground.scratch.file("policy.toml", "version = 1\n[[rule]]\nname = \"all\"\nmax = \"1M\"\n");
    // The role runs the copied binary; a small script is copied faster than foreread.
    ground.scratch.file("program", "#!/bin/sh\necho installed\n");
    let role = "  roles:
    - role: foreread.foreread.install
      foreread_binary: program
      foreread_binary_directory: \"{{ home }}/bin\"
      foreread_policy: \"{{ lookup('ansible.builtin.file', 'policy.toml') }}\\n\"
      foreread_policy_file: \"{{ home }}/etc/foreread/policy.toml\"
";
    // Three changes: the binary, the directory of the policy, and the policy.
    for (arguments, changed) in [("--check", 3), ("", 3), ("", 0)] {
        let (code, out) = ground.playbook(role, arguments);
        let count = out.matches(&format!("changed={changed} ")).count();
        assert_eq!((code, count), (0, homes.len()), "{arguments}: {out}");
        let is_installed = |home: &PathBuf| home.join("bin/foreread").exists();
        assert_eq!(homes.iter().all(is_installed), arguments.is_empty());
    }
    for home in &homes {
        let (code, out, _) = run(&mut Command::new(home.join("bin/foreread")));
        assert_eq!((code, out.as_str()), (0, "installed\n"));
        let policy = fs::read_to_string(home.join("etc/foreread/policy.toml")).unwrap();
        assert!(policy.contains("max = \"1M\""), "{policy}");
    }
    let (code, out) = ground.playbook(&role.replace("program", "''"), "");
    assert!(code == 2 && out.contains("set foreread_package or foreread_binary"), "{out}");
}
