//! Values for arguments and options: valid ones, and mistakes of people and scripts.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use super::grammar::Argument;

/// Returns a random element.
pub fn one<'a, T: ?Sized>(of: &[&'a T], rng: &mut Pcg64Mcg) -> &'a T {
    of[rng.random_range(0..of.len())]
}

const TARGETS: &[&str] = &[
    "sim:nvme",
    "sim:nvme,cache=64M",
    "sim:hdd-modern,cache=256M,policy=zfs",
    "sim:raid10-2008,cache=64M",
    "sim:model.toml",
    "data",
    "data/file",
    "data/file",
    ".",
    "virtual:zero,fs=ext4,size=64M",
    "virtual:nvme,fs=raw,size=64M,dilation=1",
];
/// Targets that do not belong to the test; they are drawn rarely.
const LOOKED_AT: &[&str] = &["/", "/proc", "/sys", "/dev/null", "/dev/zero", "/etc", "/dev/shm"];
const FILES: &[&str] = &[
    "model.toml",
    "workload.toml",
    "table.csv",
    "job.fio",
    "t.trace",
    "policy.toml",
    "out.txt",
    "runs.sqlite",
    "foreign.sqlite",
    "empty",
    "data",
    "data/file",
    "-",
    "out/of/place",
    "config.toml",
];
const SIZES: &[&str] = &["0", "4K", "128K", "1M", "16M", "64M", "256s", "4096B", "100T"];
const TIMES: &[&str] = &["10ms", "50ms", "200ms", "1s", "0s", "0.5s"];
const NUMBERS: &[&str] = &["0", "1", "2", "3", "8", "50", "100"];
const TEXTS: &[&str] = &[
    "1",
    "50ms",
    "64M",
    "5%",
    "name",
    "all",
    "seq-1",
    "2026-01-01",
    "user:root",
    "pid:1",
    "command:cat",
    "path:/srv/*",
    "127.0.0.1",
    "host=/nowhere",
    "0.5",
];
const SETTINGS: &[&str] = &[
    "read_ahead=128K",
    "read_ahead=1M",
    "read_ahead=4K,1M",
    "read_ahead=0",
    "scheduler=none",
    "max_sectors_kb=128",
    "nr_requests=64",
    "vm.dirty_bytes=256M",
    "policy=linux-6.18,zfs",
    "read_ahead=1088K",
    "rotational=0",
];
/// Values that no option accepts, or few do.
const SLIPS: &[&str] = &[
    "",
    "-1",
    "-9223372036854775809",
    "18446744073709551616",
    "99999999999999999999999T",
    "1e308",
    "nan",
    "inf",
    "128",
    "128kB",
    "1MB",
    "0x80",
    "1.5.2",
    "½",
    "10 minutes",
    "5m",
    "3KB",
    "/dev/zero",
    "/dev/null",
    "/dev/full",
    "fifo",
    "round",
    "missing",
    "data",
    "/",
    "..",
    "-",
    "--",
    "foreign.sqlite",
    "binary",
    "empty",
    "/proc/self/mem",
    "/proc/1/environ",
    "/dev/nosuch",
    "größe",
    "日本語",
    "a\u{202e}b",
    "a\u{1b}[31mb",
    "a\nb",
    "a\tb",
    "'",
    "\"",
    "$(false)",
    "%s%n",
    "{}",
    "=",
    ",",
    ":",
    "a=b",
    "a=",
    "=b",
    "sim:",
    "virtual:",
    "sim:nosuch",
    "virtual:nosuch",
    "sim:nvme,",
    "sim:nvme,cache",
    "sim:nvme,cache=",
    "sim:nvme,cache=-1",
    "sim:nvme,cache=1",
    "virtual:zero,size=1",
    "virtual:zero,fs=ntfs",
    "sim:fifo",
    "virtual:/dev/zero",
    "trace:fifo",
    "fio:/dev/zero",
    "fio:data",
    "trace:",
    "cmd:",
    "dd:bs=0",
    "read_ahead=",
    "read_ahead=1",
    "read_ahead=-1K",
    "read_ahead=999999T",
    "nosuch=1",
    "last",
    "0",
    "4294967296",
    "7",
];

/// Returns a value that an option or argument is likely to accept.
pub fn fitting(argument: &Argument, targets: &[String], rng: &mut Pcg64Mcg) -> OsString {
    if !argument.default.is_empty() && rng.random_bool(0.2) {
        return argument.default[0].clone().into();
    }
    let own: &[&str] = match argument.id.as_str() {
        "config" => &["config.toml", "config.toml", "/dev/null", "model.toml", "missing"],
        "store" => &["runs.sqlite", "new.sqlite", "new.sqlite", "foreign.sqlite", "data"],
        "result_file" | "output" => &["out.txt", "out.toml", "out.trace", "-", "empty", "data"],
        _ => &[],
    };
    if !own.is_empty() {
        return one(own, rng).into();
    }
    let word = match argument.kind.as_deref().unwrap_or_default() {
        "target" => return target(targets, rng),
        "workload" => workload(argument, rng),
        "tunable" => one(SETTINGS, rng).to_owned(),
        "model" => model(argument, rng),
        "file" => one(FILES, rng).to_owned(),
        "run" => one(&["1", "2", "last"], rng).to_owned(),
        "free" => free(argument, rng).to_owned(),
        _ => offered(argument, rng),
    };
    word.into()
}

fn target(targets: &[String], rng: &mut Pcg64Mcg) -> OsString {
    if !targets.is_empty() && rng.random_bool(0.5) {
        return targets[rng.random_range(0..targets.len())].clone().into();
    }
    let all = if rng.random_bool(0.85) { TARGETS } else { LOOKED_AT };
    one(all, rng).into()
}

fn offered(argument: &Argument, rng: &mut Pcg64Mcg) -> String {
    match argument.words.as_slice() {
        [] => one(TEXTS, rng).to_owned(),
        words => words[rng.random_range(0..words.len())].clone(),
    }
}

fn model(argument: &Argument, rng: &mut Pcg64Mcg) -> String {
    let sized = argument.value_name.as_ref().is_some_and(|name| name.contains("KEY"));
    match rng.random_range(0..4) {
        0 => "model.toml".to_owned(),
        _ if sized => format!("{},size=64M", offered(argument, rng)),
        1 => format!("{},fs=ext4,size=64M", offered(argument, rng)),
        _ => offered(argument, rng),
    }
}

fn workload(argument: &Argument, rng: &mut Pcg64Mcg) -> String {
    let word = offered(argument, rng);
    match word.as_str() {
        "trace:" => "trace:t.trace".to_owned(),
        "fio:" => "fio:job.fio".to_owned(),
        "cmd:" => one(&["cmd:true", "cmd:exit 3", "cmd:sleep 0.1"], rng).to_owned(),
        _ if rng.random_bool(0.1) => "workload.toml".to_owned(),
        _ if rng.random_bool(0.2) => format!("{word},{}", offered(argument, rng)),
        _ => word,
    }
}

fn free(argument: &Argument, rng: &mut Pcg64Mcg) -> &'static str {
    let name = argument.value_name.as_deref().unwrap_or_default();
    let of = |part: &str| name.contains(part);
    match () {
        () if of("SETTING") || of("TUNABLE") => one(SETTINGS, rng),
        () if of("SIZE") => one(SIZES, rng),
        () if of("TIME") || of("INTERVAL") || of("MIN") => one(TIMES, rng),
        () if name == "N" || of("N[") || of("PID") || of("P[") || of("PERCENT") => {
            one(NUMBERS, rng)
        }
        () => one(TEXTS, rng),
    }
}

/// Returns a value that is likely to be rejected.
pub fn slip(rng: &mut Pcg64Mcg) -> OsString {
    match rng.random_range(0..20) {
        0 => OsString::from_vec(vec![0xff, b'a', 0xfe, 0x80]),
        1 => "x".repeat(rng.random_range(200..5000)).into(),
        2 => "9".repeat(rng.random_range(10..400)).into(),
        _ => one(SLIPS, rng).into(),
    }
}

/// Returns a command for foreread to run.
pub fn command(rng: &mut Pcg64Mcg) -> Vec<OsString> {
    let all: &[&[&str]] = &[
        &["true"],
        &["sh", "-c", "exit 7"],
        &["sh", "-c", "kill -9 $$"],
        &["cat", "data/file"],
        &["sleep", "0.1"],
        &["no-such-program"],
        &["./table.csv"],
        &["data"],
        &["/etc/passwd"],
        &[""],
        &["cat", "--no-such-option"],
    ];
    one(all, rng).iter().map(OsString::from).collect()
}
