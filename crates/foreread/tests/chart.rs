//! The Helm chart: lint, schemas of several versions of Kubernetes, and a real run with its
//! container's arguments.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may panic, and prints skips

mod program;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use program::{Scratch, run};
use serde_json::Value;
use testkit::host_tree::{HostTree, TreeDisk};

const VERSIONS: [&str; 5] = ["1.25.0", "1.28.0", "1.31.0", "1.34.0", "1.37.0"];
/// The default values, and values that enable every part of the chart.
const VALUES: [&str; 2] = [
    "",
    "policy: |\n  version = 1\n  [[rule]]\n  name = \"all\"\n  max = \"256K\"\n\
     nodeFeatures: {storage-nonrotationaldisk: \"true\"}\nnodeSelector: {pool: db}\n\
     image: {repository: registry.example/foreread, pullSecrets: [{name: pull}]}\n\
     podAnnotations: {team: storage}\npriorityClassName: system-node-critical\n",
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Helm, and a Python with the schemas of Kubernetes. Without them, the tests are skipped.
struct Kubernetes {
    helm: PathBuf,
    python: PathBuf,
    chart: PathBuf,
    scratch: Scratch,
}

impl Kubernetes {
    fn find() -> Option<Self> {
        let root = repository();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&path).chain([root.join("target/go/bin")]);
        let helm = places.find_map(|place| Some(place.join("helm")).filter(|file| file.is_file()));
        let python = root.join("target/venv/bin/python");
        let schemas = Command::new(&python).args(["-c", "import kubernetes_validate"]).output();
        match helm {
            Some(helm) if schemas.is_ok_and(|output| output.status.success()) => {
                let chart = root.join("packaging/helm/foreread");
                Some(Self { helm, python, chart, scratch: Scratch::new() })
            }
            _ => {
                println!("SKIP: no helm, or no kubernetes-validate; scripts/deps installs them");
                None
            }
        }
    }

    fn helm(&self, words: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(&self.helm);
        run(command.args(words).arg(&self.chart).arg("--values").arg(self.path("values.yaml")))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Renders the objects of the chart as JSON, and checks them against the schemas of a version.
    fn objects(&self, version: &str) -> Vec<Value> {
        let words = ["template", "r", "--namespace", "n", "--kube-version", version];
        let (code, out, said) = self.helm(&words);
        assert_eq!(code, 0, "{version}: {said}");
        self.scratch.file("objects.yaml", &out);
        let validate = "import json, sys, yaml, kubernetes_validate as k\n\
            objects = [o for o in yaml.safe_load_all(open(sys.argv[1])) if o]\n\
            [k.validate(o, sys.argv[2], strict=True) for o in objects]\n\
            json.dump(objects, sys.stdout)";
        let mut python = Command::new(&self.python);
        let python = python.args(["-c", validate]).arg(self.path("objects.yaml"));
        let (code, out, said) = run(python.arg(version.rsplit_once('.').unwrap().0));
        assert_eq!(code, 0, "{version}: {said}");
        serde_json::from_str(&out).unwrap()
    }
}

#[test]
fn the_chart_passes_lint_and_the_schemas_of_five_versions() {
    let Some(kubernetes) = Kubernetes::find() else { return };
    for values in VALUES {
        kubernetes.scratch.file("values.yaml", values);
        let (code, out, said) = kubernetes.helm(&["lint", "--strict"]);
        assert_eq!(code, 0, "{out}{said}");
        for version in VERSIONS {
            let objects = kubernetes.objects(version);
            let kinds: Vec<&str> = objects.iter().filter_map(|one| one["kind"].as_str()).collect();
            let wanted = if values.is_empty() { 1 } else { 2 };
            assert!(kinds.len() == wanted && kinds.contains(&"DaemonSet"), "{version}: {kinds:?}");
        }
    }
    // The check detects errors, and the chart rejects unknown values.
    for wrong in ["resources: {limits: 7}", "tolerations: [{operater: Exists}]"] {
        kubernetes.scratch.file("values.yaml", wrong);
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            kubernetes.objects(VERSIONS[0]);
        }));
        assert!(found.is_err(), "{wrong}");
    }
    for wrong in ["polcy: x", "port: 80", "image: {repository: ''}", "policy: {a: 1}"] {
        kubernetes.scratch.file("values.yaml", wrong);
        assert_ne!(kubernetes.helm(&["template", "r"]).0, 0, "{wrong}");
    }
}

/// The pod may only read, and this foreread accepts its arguments.
#[test]
fn the_container_has_no_privileges_and_its_arguments_work() {
    let Some(kubernetes) = Kubernetes::find() else { return };
    kubernetes.scratch.file("values.yaml", VALUES[1]);
    let objects = kubernetes.objects(VERSIONS[0]);
    let of = |kind: &str| objects.iter().find(|one| one["kind"] == kind).unwrap();
    let pod = &of("DaemonSet")["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let security = &container["securityContext"];
    assert_eq!(security["capabilities"]["drop"], serde_json::json!(["ALL"]));
    assert_eq!(security["capabilities"]["add"], Value::Null);
    for (what, wanted) in [
        (&security["allowPrivilegeEscalation"], false),
        (&security["readOnlyRootFilesystem"], true),
        (&pod["securityContext"]["runAsNonRoot"], true),
        (&pod["automountServiceAccountToken"], false),
    ] {
        assert_eq!(*what, wanted, "{pod}");
    }
    for key in ["hostPID", "hostNetwork", "hostIPC"] {
        assert_eq!(pod[key], Value::Null, "{key}");
    }
    let mounts = container["volumeMounts"].as_array().unwrap();
    assert!(mounts.iter().all(|mount| mount["readOnly"] == true), "{mounts:?}");
    assert_eq!(pod["nodeSelector"]["feature.node.kubernetes.io/storage-nonrotationaldisk"], "true");
    // Run with the policy of the ConfigMap and the arguments, with paths of this machine.
    let policy = of("ConfigMap")["data"]["policy.toml"].as_str().unwrap();
    kubernetes.scratch.file("policy.toml", policy);
    let tree = kubernetes.path("host");
    let mut host = HostTree::new(&tree, "node", &"7".repeat(32)).unwrap();
    let disk = TreeDisk { index: 0, read_ahead_kib: 8192, mount: "/", wwn: "eui.1" };
    host.disk(&disk).unwrap();
    let place = |argument: &str| {
        let argument = argument.replace("=/host", &format!("={}", tree.display()));
        let policy = format!("={}", kubernetes.path("policy.toml").display());
        argument.replace("=/etc/foreread/policy.toml", &policy)
    };
    let arguments = container["args"].as_array().unwrap().iter().filter_map(Value::as_str);
    let mut command = program::foreread_in(kubernetes.scratch.path());
    let arguments: Vec<String> = arguments
        .map(|argument| match argument {
            "--port=9797" => "--port=0".to_owned(),
            other => place(other),
        })
        .collect();
    assert!(arguments.contains(&"--port=0".to_owned()), "{arguments:?}");
    let mut child = command.args(&arguments).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let started = lines.take(2).any(|line| line.starts_with("http://0.0.0.0:"));
    let _ = child.kill();
    let _ = child.wait();
    assert!(started, "{arguments:?}");
    assert!(fs::metadata(kubernetes.path("state")).is_err(), "it writes nothing");
}
