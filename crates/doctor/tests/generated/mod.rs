//! Random hosts, and the properties that every plan must have.

use std::collections::BTreeMap;
use std::path::Path;

use foreread_doctor::plan::{Action, DevicePlan, PlanStep, plan};
use foreread_doctor::{Diagnosis, HostSnapshot, Windows, diagnose};
use host::owners::{Certainty, OwnerKind};
use proptest::prelude::*;
use serde_json::json;
use tunables::persist::{PersistBackend, drafts};
use tunables::{DEFAULT_STREAMS, TunableScope, TunableValues, plan_apply};
use units::{Bytes, Kib};

use super::hosts::{FLASH, Machine, Queue};

/// Sizes in KiB: zero, below a page, not whole pages, usual, large, and above apply's maximum.
const SIZES: [u64; 14] =
    [0, 3, 4, 6, 64, 128, 300, 1024, 1088, 4096, 8192, 65536, 1 << 20, 1 << 22];

fn size() -> impl Strategy<Value = u64> {
    proptest::sample::select(SIZES.to_vec())
}

/// A size that a kernel can hold, with pages of 4 or 64 KiB.
fn kept() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => size().prop_map(|kib| kib / 64 * 64),
        1 => Just(4u64),
        1 => Just(0u64),
    ]
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Disk { rotational: bool },
    Array { member: u64 },
    Volume { disk: u64, metadata: Option<u64> },
    Multipath { path: u64 },
    Nfs,
    Bare,
}

#[derive(Clone, Debug)]
struct Device {
    kind: Kind,
    kib: u64,
    optimal: u64,
    serial: bool,
    ext4: bool,
}

#[derive(Clone, Debug)]
struct Rule {
    devices: &'static str,
    kib: u64,
    sectors: bool,
    comment: bool,
    packaged: bool,
}

#[derive(Clone, Debug)]
pub struct Host {
    kernel: &'static str,
    large_pages: bool,
    memory_kib: Option<u64>,
    devices: Vec<Device>,
    rules: Vec<Rule>,
    broken_rule: bool,
    tuned: Option<u64>,
    own_rule: Option<u64>,
    nfs_conf: Option<u64>,
}

fn device() -> impl Strategy<Value = Device> {
    let kind = prop_oneof![
        any::<bool>().prop_map(|rotational| Kind::Disk { rotational }),
        kept().prop_map(|member| Kind::Array { member }),
        (kept(), proptest::option::of(size()))
            .prop_map(|(disk, metadata)| Kind::Volume { disk, metadata }),
        kept().prop_map(|path| Kind::Multipath { path }),
        Just(Kind::Nfs),
        Just(Kind::Bare),
    ];
    let optimal = prop_oneof![Just(0u64), Just(65536), Just(4 << 20)];
    (kind, kept(), optimal, any::<bool>(), any::<bool>())
        .prop_map(|(kind, kib, optimal, serial, ext4)| Device { kind, kib, optimal, serial, ext4 })
}

fn rule() -> impl Strategy<Value = Rule> {
    let devices = proptest::sample::select(vec!["*", "sd*", "dm-*", "md*", "sda", "sdb"]);
    (devices, size(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(devices, kib, sectors, comment, packaged)| Rule {
            devices,
            kib,
            sectors,
            comment,
            packaged,
        },
    )
}

pub fn host() -> impl Strategy<Value = Host> {
    let kernel = proptest::sample::select(vec!["5.4.0", "6.1.0", "6.18.0"]);
    let memory = proptest::sample::select(vec![
        None,
        Some(0),
        Some(100),
        Some(4096),
        Some(65536),
        Some(1 << 20),
        Some(1 << 24),
    ]);
    let owned = || proptest::option::weighted(0.2, size());
    let devices = proptest::collection::vec(device(), 1..4);
    let rules = proptest::collection::vec(rule(), 0..3);
    let few = || proptest::bool::weighted(0.15);
    (kernel, few(), memory, devices, rules, few(), owned(), owned(), owned()).prop_map(
        |(kernel, large_pages, memory_kib, devices, rules, broken_rule, tuned, own_rule, nfs)| {
            Host {
                kernel,
                large_pages,
                memory_kib,
                devices,
                rules,
                broken_rule,
                tuned,
                own_rule,
                nfs_conf: nfs,
            }
        },
    )
}

impl Host {
    fn build(&self) -> Machine {
        let mut machine = Machine::new(self.kernel).mount("0:5", "/", "tmpfs", "tmpfs");
        machine = match self.memory_kib {
            Some(kib) => machine.memory_available(kib),
            None => machine.with("proc/meminfo", "MemTotal: 1024 kB\n"),
        };
        if self.large_pages {
            machine = machine.pages_of_64_kib();
        }
        for (index, device) in self.devices.iter().enumerate() {
            machine = device.add(machine, index);
        }
        for (index, rule) in self.rules.iter().enumerate() {
            machine = rule.add(machine, index);
        }
        if self.broken_rule {
            machine = machine.with(
                "etc/udev/rules.d/99-broken.rules",
                "KERNEL==\"sd*, ATTR{queue/read_ahead_kb}=\"x\"\nATTR{queue/read_ahead_kb}=\"-1\"\n\
                 SUBSYSTEM==\"block\", ATTR{queue/read_ahead_kb}=\"99999999999999999999\"\n",
            );
        }
        if let Some(kib) = self.tuned {
            machine = machine.tuned("mine", &format!("[disk]\nreadahead=>{kib}\n"));
        }
        if let Some(kib) = self.own_rule {
            let text = format!(
                "# managed by foreread; undo with: foreread rollback all\nSUBSYSTEM==\"block\", \
                 KERNEL==\"sda\", ATTR{{queue/read_ahead_kb}}=\"{kib}\"\n"
            );
            machine = machine.with("etc/udev/rules.d/99-foreread-x.rules", &text);
        }
        if let Some(kib) = self.nfs_conf {
            let helper = "SUBSYSTEM==\"bdi\", ACTION==\"add\", PROGRAM=\"/usr/libexec/nfsrahead \
                          %k\", ATTR{read_ahead_kb}=\"%c\"\n";
            machine = machine
                .with("usr/lib/udev/rules.d/99-nfs.rules", helper)
                .with("etc/nfs.conf", &format!("[nfsrahead]\nnfs4={kib}\n"));
        }
        machine
    }
}

impl Device {
    fn queue(&self, kib: u64, rotational: bool) -> Queue {
        Queue {
            read_ahead_kb: kib,
            optimal_io_size: self.optimal,
            rotational: rotational.into(),
            ..FLASH
        }
    }

    fn add(&self, machine: Machine, index: usize) -> Machine {
        let disk = format!("sd{}", char::from(b'a' + index as u8));
        let number = format!("8:{}", index * 16);
        let point = format!("/mnt/d{index}");
        let fstype = if self.ext4 { "ext4" } else { "xfs" };
        if self.serial {
            for device in [&number, &format!("253:{index}"), &format!("9:{index}")] {
                let text = format!("E:ID_SERIAL=SERIAL-{device}\n");
                machine.file(&format!("run/udev/data/b{device}"), &text);
            }
        }
        let with_disk =
            |machine: Machine, kib| machine.device(&disk, &number, self.queue(kib, false));
        let dm = |machine: Machine, label: &str, uuid: &str| {
            let (name, number) = (format!("dm-{index}"), format!("253:{index}"));
            machine
                .dm(&name, &number, label, uuid, self.queue(self.kib, false))
                .member(&name, &disk)
                .mount(&number, &point, fstype, &format!("/dev/mapper/{label}"))
        };
        match self.kind {
            Kind::Disk { rotational } => machine
                .device(&disk, &number, self.queue(self.kib, rotational))
                .mount(&number, &point, fstype, &format!("/dev/{disk}")),
            Kind::Bare => with_disk(machine, self.kib),
            Kind::Array { member } => {
                let (name, number) = (format!("md{index}"), format!("9:{index}"));
                with_disk(machine, member)
                    .md(&name, &number, "raid5", 3, self.queue(self.kib, false))
                    .member(&name, &disk)
                    .mount(&number, &point, fstype, &format!("/dev/{name}"))
            }
            Kind::Volume { disk, metadata } => {
                let machine = with_disk(machine, disk);
                if let Some(kib) = metadata {
                    let text = format!(
                        "vg{index} {{\nlogical_volumes {{\nlv {{\nread_ahead = {}\n}}\n}}\n}}\n",
                        kib * 2
                    );
                    machine.file(&format!("etc/lvm/backup/vg{index}"), &text);
                }
                dm(machine, &format!("vg{index}-lv"), &format!("LVM-{index}"))
            }
            Kind::Multipath { path } => {
                dm(with_disk(machine, path), &format!("mpath{index}"), &format!("mpath-{index}"))
            }
            Kind::Nfs => machine.bdi(&format!("0:{}", 50 + index), self.kib).mount_with(
                &format!("0:{}", 50 + index),
                &point,
                "nfs4",
                "server:/x",
                "rw",
            ),
        }
    }
}

impl Rule {
    fn add(&self, machine: Machine, index: usize) -> Machine {
        let folder = if self.packaged { "usr/lib" } else { "etc" };
        let comment =
            if self.comment { format!("# {} sectors\n", self.kib) } else { String::new() };
        let devices = self.devices;
        let action = if self.sectors {
            format!("RUN+=\"/sbin/blockdev --setra {} /dev/%k\"", self.kib * 2)
        } else {
            format!("ATTR{{queue/read_ahead_kb}}=\"{}\"", self.kib)
        };
        let text = format!("{comment}SUBSYSTEM==\"block\", KERNEL==\"{devices}\", {action}\n");
        machine.with(&format!("{folder}/udev/rules.d/6{index}-ra.rules"), &text)
    }
}

/// Splits a command into words, as a shell does with simple quotes.
fn words(command: &str) -> Vec<String> {
    command.split(' ').map(|word| word.trim_matches('\'').to_owned()).collect()
}

fn option<'a>(words: &'a [String], name: &str) -> Option<&'a str> {
    let at = words.iter().position(|word| word == name)?;
    words.get(at + 1).map(String::as_str)
}

struct Checked<'a> {
    snapshot: &'a HostSnapshot,
    diagnosis: &'a Diagnosis,
    plan: &'a DevicePlan,
}

impl Checked<'_> {
    fn holds(&self) -> Result<(), TestCaseError> {
        let (plan, snapshot) = (self.plan, self.snapshot);
        prop_assert!(plan.steps.is_sorted_by_key(|step| step.action), "{plan:#?}");
        let applies = plan.steps.iter().filter(|step| step.action == Action::Apply).count();
        prop_assert!(applies <= 1 && (plan.present_kib == plan.target_kib || applies == 1));
        for step in &plan.steps {
            if let Some(value) = step.read_ahead_kib {
                prop_assert_eq!(value, plan.target_kib, "{:#?}", plan);
                prop_assert!(!value.is_zero() && snapshot.floored(value) == value, "{:#?}", plan);
            }
            match step.action {
                Action::Apply => self.apply(step)?,
                Action::Persist => self.persist(step)?,
                Action::Edit | Action::Measure => {}
            }
        }
        Ok(())
    }

    fn site(&self, words: &[String]) -> (host::Storage, TunableScope) {
        let on = option(words, "--on").unwrap();
        let storage = host::resolve(&self.snapshot.root, Path::new(on)).unwrap();
        let site = TunableScope::with_layers(&self.snapshot.root, &storage);
        (storage, site)
    }

    fn settings(&self, words: &[String]) -> TunableValues {
        let setting = words.iter().find(|word| word.starts_with("read_ahead=")).unwrap();
        let setting: tunables::Setting = setting.parse().unwrap();
        TunableValues::default().with(setting)
    }

    /// Runs the checks of `apply -n` on the device that the command names.
    fn apply(&self, step: &PlanStep) -> Result<(), TestCaseError> {
        let words = words(&step.command);
        let (storage, site) = self.site(&words);
        prop_assert_eq!(&storage.bdi, &self.plan.bdi, "{:#?}", self.plan);
        let settings = self.settings(&words);
        prop_assert_eq!(settings.window(), Some(self.plan.target_kib.to_bytes()));
        let planned = plan_apply(&self.snapshot.root, &site, &settings, DEFAULT_STREAMS);
        prop_assert!(planned.is_ok(), "{:?}\n{:#?}", planned.err(), self.plan);
        prop_assert!(planned.unwrap().settings == settings, "{:#?}", self.plan);
        let available = self.snapshot.memory_available.unwrap_or(Bytes::new(u64::MAX));
        let need = units::read_ahead_memory(self.plan.target_kib.to_bytes(), 8);
        let smaller = self.plan.target_kib < self.plan.present_kib;
        prop_assert!(smaller || need.get() / 4 <= available.get(), "{:#?}", self.plan);
        Ok(())
    }

    /// Runs the checks of `persist -n`: the file it would write, and that there is no other owner.
    fn persist(&self, step: &PlanStep) -> Result<(), TestCaseError> {
        let words = words(&step.command);
        let (storage, site) = self.site(&words);
        let with = match option(&words, "--with") {
            Some("systemd") => Some(PersistBackend::Systemd),
            Some("lvm") => Some(PersistBackend::Lvm),
            Some(other) => panic!("{other}"),
            None => None,
        };
        let settings = self.settings(&words);
        let root = &self.snapshot.root;
        let drafts = drafts(root, Some(&storage), &site, &settings, with, "/usr/bin/foreread");
        prop_assert!(drafts.is_ok(), "{:?}\n{:#?}", drafts.err(), self.plan);
        let rival = self.diagnosis.claims.iter().find(|claim| {
            let by_lvm = with == Some(PersistBackend::Lvm) && claim.owner == OwnerKind::Lvm;
            !by_lvm
                && !claim.by_foreread
                && !claim.is_nfsrahead_default()
                && claim.certainty == Certainty::Sure
        });
        let over = words.iter().any(|word| word == "--force-owner");
        prop_assert!(rival.is_none() || over, "{rival:?}\n{:#?}", self.plan);
        Ok(())
    }
}

/// Checks that all plans change a line of a file to the same value.
fn edits_agree(plans: &[DevicePlan]) -> Result<(), TestCaseError> {
    let mut written: BTreeMap<String, Kib> = BTreeMap::new();
    let edits = plans.iter().flat_map(|plan| &plan.steps);
    for step in edits.filter(|step| step.action == Action::Edit) {
        // `lvchange` edits LVM's metadata, where each volume has its own line.
        let in_file = !step.command.starts_with("lvchange ");
        let Some(value) = step.read_ahead_kib.filter(|_| in_file) else { continue };
        let place = step.reason.split(" at ").nth(1).and_then(|rest| rest.split_once(" to "));
        prop_assert!(place.is_some(), "no place in the reason: {step:#?}");
        let (place, _) = place.unwrap();
        let known = written.insert(place.to_owned(), value);
        prop_assert!(known.is_none_or(|known| known == value), "{place}: {plans:#?}");
    }
    Ok(())
}

fn planned(machine: &Machine) -> (HostSnapshot, Vec<Diagnosis>, Vec<DevicePlan>) {
    let snapshot = machine.snapshot(Windows::not_asked());
    let diagnoses = diagnose(&snapshot);
    let plans = plan(&snapshot, &diagnoses);
    (snapshot, diagnoses, plans)
}

/// Sets the values of the plans as `apply` does, and publishes the journal.
fn follow(machine: &Machine, plans: &[DevicePlan]) {
    let journals = plans.iter().map(|plan| {
        let (bdi, bytes) = (&plan.bdi, |kib: Kib| kib.to_bytes().get());
        let directory = format!("sys/devices/virtual/bdi/{bdi}");
        machine
            .file(&format!("{directory}/read_ahead_kb"), &format!("{}\n", plan.target_kib.get()));
        json!({
            "journal": format!("/var/lib/foreread/journal/1-2-{bdi}.jsonl"),
            "bdi": bdi.to_string(),
            "purpose": "apply",
            "owner": {"pid": 4_194_305, "start_time": 1, "boot_id": "b"},
            "settings": [{
                "tunable": "read_ahead",
                "file": format!("/{directory}/read_ahead_kb"),
                "original": {"bytes": bytes(plan.present_kib)},
                "value": {"bytes": bytes(plan.target_kib)},
            }],
        })
    });
    let published = json!({"version": 1, "journals": journals.collect::<Vec<_>>()});
    machine.file("var/lib/foreread/settings.json", &published.to_string());
}

fn check(host: &Host) -> Result<(), TestCaseError> {
    let machine = host.build();
    let (snapshot, diagnoses, plans) = planned(&machine);
    for plan in &plans {
        let same = plans.iter().filter(|other| other.bdi == plan.bdi).count();
        prop_assert_eq!(same, 1, "one plan for a bdi: {:#?}", plans);
        let diagnosis = diagnoses.iter().find(|one| one.subject.bdi == plan.bdi).unwrap();
        Checked { snapshot: &snapshot, diagnosis, plan }.holds()?;
    }
    edits_agree(&plans)?;
    // After the plan, no step is left to apply: no other finding proposes another value.
    follow(&machine, &plans);
    let (_, _, again) = planned(&machine);
    for plan in &again {
        let apply = plan.steps.iter().find(|step| step.action == Action::Apply);
        prop_assert!(apply.is_none(), "first {plans:#?}\nthen {plan:#?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        max_shrink_time: 20_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_host_gets_one_plan_that_can_be_followed(host in host()) {
        check(&host)?;
    }
}

#[test]
fn two_values_for_one_line_are_noticed() {
    let machine = Machine::new("6.1.0")
        .device("sda", "8:0", Queue { read_ahead_kb: 0, ..FLASH })
        .mount("8:0", "/data", "ext4", "/dev/sda")
        .with("etc/udev/rules.d/60-ra.rules", "KERNEL==\"sd*\", ATTR{queue/read_ahead_kb}=\"3\"\n");
    let (_, _, mut plans) = planned(&machine);
    plans.push(plans[0].clone());
    assert!(edits_agree(&plans).is_ok());
    // As in a real plan, the reason contains the value.
    let edit = plans[1].steps.iter_mut().find(|step| step.action == Action::Edit).unwrap();
    edit.reason = edit.reason.replace(" to ", " to twice ");
    edit.read_ahead_kib = edit.read_ahead_kib.map(|kib| Kib::new(kib.get() * 2));
    assert!(edits_agree(&plans).is_err());
}
