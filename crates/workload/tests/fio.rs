//! Job files of fio: parsed as by fio, run or rejected, without a panic.
#![allow(clippy::unwrap_used)] // a test may panic

use std::path::Path;

use foreread_workload::fio::{
    Conditions, FioEnvironment, FioError, Included, JobFile, ReplacementFile,
};
use foreread_workload::{AccessMethod, Hint, Outside, Pattern, Sharing, Workload, export_fio};
use proptest::prelude::*;
use testkit::fuzz;
use units::{Bytes, Nanos};

fn parse(text: &str) -> Result<JobFile, FioError> {
    JobFile::parse(text, &FioEnvironment::none())
}

fn native(text: &str) -> Result<Workload, FioError> {
    parse(text)?.groups()[0].native("job")
}

fn message(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn the_job_files_of_2008_are_workloads_of_our_own() {
    let one = parse(include_str!("data/seq-read.fio")).unwrap();
    let eight = parse(include_str!("data/seq-read8.fio")).unwrap();
    assert_eq!((one.groups().len(), eight.groups().len()), (1, 1));
    assert_eq!(eight.groups()[0].name(), "seq-read8");
    assert_eq!(eight.groups()[0].runtime(), Some(Nanos::from_secs(60)));
    let workload = eight.groups()[0].native("seq-read8").unwrap();
    let expected = Workload {
        readers: 8,
        file_size: Some(Bytes::from_gib(8)),
        ..Workload::new("seq-read8", Pattern::Sequential, Bytes::from_kib(8))
    };
    assert_eq!(workload, expected);
    let one = one.groups()[0].native("seq-read").unwrap();
    assert_eq!((one.readers, one.file_size), (1, Some(Bytes::from_gib(64))));
    assert_eq!((one.hint, one.access), (Hint::None, AccessMethod::Read));
}

#[test]
fn global_sections_add_up_and_hold_for_what_follows() {
    let text = "[global]\nbs=8k\nsize=1g\n[a]\nrw=read\n[globals]\nbs=64k\n[b]\nstonewall\n\
                [c]\nstonewall\nbs=128k\nsize=1m\n";
    let file = parse(text).unwrap();
    let natives: Vec<Workload> =
        file.groups().iter().map(|group| group.native("x").unwrap()).collect();
    let blocks: Vec<u64> = natives.iter().map(|workload| workload.block.get() >> 10).collect();
    assert_eq!(blocks, [8, 64, 128]);
    assert_eq!(natives[1].file_size, Some(Bytes::from_gib(1)));
    assert_eq!(natives[2].file_size, Some(Bytes::from_mib(1)));
}

#[test]
fn ranges_of_sizes_are_drawn_by_our_own_engine_and_by_fio() {
    for (text, least, most) in [
        ("bs=4k-64k", Some(4), 64),
        ("bs=4k-64k,8k", Some(4), 64),
        ("bs=8k,4k-64k", None, 8),
        ("bsrange=64k-4k,1k-2k", Some(4), 64),
        ("blocksize_range=4k:64k", Some(4), 64),
        ("bsrange=8k-8k", None, 8),
    ] {
        let text = format!("[a]\n{text}\nrw=randread\nsize=1m\n");
        let workload = native(&text).unwrap();
        let sizes = (workload.block_min, workload.block);
        assert_eq!(sizes, (least.map(Bytes::from_kib), Bytes::from_kib(most)), "{text}");
        // fio gets an equivalent option, and an exported job parses to the same workload.
        let file = parse(&text).unwrap();
        let jobs = file.groups()[0].to_text();
        assert!(!jobs.contains("bs=4k-") && !jobs.contains("bs=8k,"), "{jobs}");
        assert_eq!(native(&jobs).unwrap(), workload);
        let exported = export_fio(&workload, Bytes::from_mib(1), 1).unwrap().jobs;
        let again = native(&exported).unwrap();
        assert_eq!((again.block_min, again.block), (workload.block_min, workload.block));
    }
    let file = parse("[a]\nrw=read\nbs=4k-64k,8k\n").unwrap();
    let note = file.notes()[0].to_string();
    assert_eq!(note, "line 3: bs: interpreted as bsrange=4k-64k,8k-8k: fio's bs has no ranges");
    let refused = |text: &str| native(text).unwrap_err().to_string();
    assert!(refused("[a]\nbs=4k-10k\nrw=read\n").contains("multiple"));
    assert!(refused("[a]\nbs=4k-8k\nrw=read:4k\n").contains("if blocks are skipped"));
    for wrong in ["bs=-4k", "bs=4k-", "bs=0-4k", "bs=4k-8k-16k", "bs=-"] {
        let text = format!("[a]\n{wrong}\nrw=read\n");
        assert!(parse(&text).is_err(), "{wrong}");
    }
}

#[test]
fn the_last_of_an_option_s_names_counts() {
    let workload = native("[a]\nblocksize=64k\nbs=16k\nreadwrite=randread\nsize=1m\n").unwrap();
    assert_eq!((workload.block, workload.pattern), (Bytes::from_kib(16), Pattern::Uniform));
    let hinted = workload.hint;
    assert_eq!(hinted, Hint::Random, "fio gives hints unless told otherwise");
}

#[test]
fn patterns_that_fio_has_are_ours() {
    let pattern = |lines: &str| native(&format!("[a]\nsize=1m\nbs=4k\n{lines}\n")).unwrap().pattern;
    assert_eq!(pattern("rw=read:60k"), Pattern::Stride { step: Bytes::from_kib(64) });
    assert_eq!(pattern("rw=read:-8k"), Pattern::Backward);
    assert_eq!(pattern("rw=randread:16"), Pattern::SeekAndRead { blocks: 16 });
    let zipf = pattern("rw=randread\nrandom_distribution=zipf:1.2\nnorandommap");
    assert_eq!(zipf, Pattern::Zipf { theta: 1.2 });
    let parts = native("[a]\nrw=read\nnumjobs=4\nfilename=x\nsize=1g\noffset_increment=1g\n");
    let parts = parts.unwrap();
    assert_eq!(parts.sharing, Sharing::SharedFile);
    assert_eq!((parts.readers, parts.file_size), (4, Some(Bytes::from_gib(4))));
}

#[test]
fn what_is_wrong_is_told_with_line_and_option() {
    assert_eq!(
        message("[a]\nrw=read\nblocksiz=4k\n"),
        "line 3: blocksiz: fio has no such option (did you mean blocksize?)"
    );
    assert_eq!(message("[a]\nbs=4x\n"), "line 2: bs=4x: must be a number, as in 64k or 8g");
    assert!(message("[a]\nrw=sideways\n").starts_with("line 2: rw=sideways: must be read"));
    assert!(message("[a]\nioengine=rbd\n").starts_with("line 2: ioengine=rbd: this ioengine"));
    assert!(message("[a]\n\nverify=md5\n").starts_with("line 3: verify: "));
    assert!(message("[a]\nrw=randtrim\n").contains("does not trim"));
    assert!(message("[a]\nsize\n").contains("the option needs a value"));
    assert!(message("[a]\nsize=1k\n").starts_with("line 2: size=1k: less than a block"));
    assert_eq!(message("[global]\nbs=4k\n"), FioError::NoJob.to_string());
    let notes = parse("[a]\nsize=1m\nwrite_bw_log=x\n").unwrap();
    assert!(notes.notes()[0].to_string().starts_with("line 3: write_bw_log: ignored"));
}

#[test]
fn what_only_fio_does_is_told_with_line_and_option() {
    let message =
        |lines: &str| native(&format!("[a]\nsize=1m\n{lines}\n")).unwrap_err().to_string();
    for (lines, start) in [
        ("direct=1", "line 3: direct=1: "),
        ("ioengine=libaio\niodepth=8", "line 4: iodepth=8: "),
        ("rw=write", "line 3: rw=write: "),
        ("bssplit=4k/50:64k/50", "line 3: bssplit=4k/50:64k/50: "),
        ("nrfiles=4", "line 3: nrfiles=4: "),
        ("numjobs=2\nfilename=x", "line 4: filename=x: "),
        ("rw=randread\nnorandommap", "line 4: norandommap: "),
        ("offset=64k", "line 3: offset=64k: "),
        ("[b]\nsize=2m", "line 3: [b]: "),
    ] {
        let message = message(lines);
        assert!(message.starts_with(start) && message.contains("--engine fio"), "{message}");
    }
}

#[test]
fn pitfalls_are_told() {
    let pitfalls = |lines: &str| {
        let file = parse(&format!("[a]\nsize=1m\n{lines}\n")).unwrap();
        let notes = file.groups()[0].pitfalls();
        notes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert!(pitfalls("").starts_with("line 1: fadvise_hint: is 1 by default"));
    assert!(pitfalls("rw=randread\nfadvise_hint=1").contains("disables read-ahead"));
    assert!(pitfalls("direct=1").starts_with("line 3: direct: direct I/O bypasses"));
    assert_eq!(pitfalls("fadvise_hint=0"), "");
}

/// Returns foreread's files that replace the files of a group.
fn stands<'a>(names: &'a [String], length: Bytes) -> Vec<ReplacementFile<'a>> {
    names.iter().map(|path| ReplacementFile { path, start: Bytes::ZERO, length }).collect()
}

fn conditions(dilation: f64) -> Conditions {
    Conditions { duration: Nanos::from_secs(2), dilation, seed: 7 }
}

#[test]
fn fio_gets_the_job_on_files_of_ours() {
    let text = "[global]\ndirectory=/data\nkb_base=1000\nruntime=1m\nthinktime=500\n\
                [one]\nrw=randread\nnumjobs=2\nsize=64gib\nrate_min=1\n";
    let plain = text.replace("rate_min=1\n", "");
    let file = parse(&plain).unwrap();
    let group = &file.groups()[0];
    let names: Vec<String> = group.ground().files.iter().map(|file| file.name.clone()).collect();
    assert_eq!(names, ["one.0.0", "one.1.0"]);
    let paths = ["/mnt/a:b".to_owned(), "/mnt/c".to_owned()];
    let stands = stands(&paths, Bytes::from_mib(100));
    let job = group.for_fio(&stands, &conditions(8.0)).unwrap();
    assert_eq!(job.matches("[one]\n").count(), 2);
    for line in [
        "filename=/mnt/a\\:b",
        "size=104857600",
        "runtime=16000000us",
        "kb_base=1000",
        "thinktime=4000us",
        "rw=randread",
        "offset=0",
        "allow_file_create=0",
    ] {
        assert!(job.lines().any(|written| written == line), "{line} in {job}");
    }
    assert!(!job.contains("directory") && !job.contains("numjobs"), "{job}");
    // Options in real time are invalid on a disk that runs slower than its model.
    let timed = parse(text).unwrap();
    let problem = timed.groups()[0].for_fio(&stands, &conditions(8.0)).unwrap_err().to_string();
    assert!(problem.starts_with("line 10: rate_min=1: "), "{problem}");
    assert!(timed.groups()[0].for_fio(&stands, &conditions(1.0)).is_ok());
}

#[test]
fn places_in_a_smaller_file_are_its_share() {
    let file = parse("[a]\nfilename=x\noffset=1g\nsize=1g\nbs=64k\n").unwrap();
    let paths = ["/x".to_owned()];
    let stands = stands(&paths, Bytes::from_mib(512));
    let job = file.groups()[0].for_fio(&stands, &conditions(1.0)).unwrap();
    assert!(job.contains("offset=268435456\nsize=268435456\n"), "{job}");
}

const MANY: usize = 1 << 20;

fn any_workload() -> impl Strategy<Value = Workload> {
    let pattern = prop_oneof![
        Just(Pattern::Sequential),
        Just(Pattern::Uniform),
        Just(Pattern::Backward),
        (1u32..100).prop_map(|theta| Pattern::Zipf { theta: f64::from(theta) / 10.0 }),
        (1u64..64).prop_map(|k| Pattern::Stride { step: Bytes::from_kib(4 + 4 * k) }),
        (1u32..64).prop_map(|blocks| Pattern::SeekAndRead { blocks }),
        (2u32..5).prop_map(|streams| Pattern::Interleaved { streams }),
        (2u32..9).prop_map(|span| Pattern::Disorder { span }),
        (1u32..9, any::<bool>()).prop_map(|(tenths, same_open_file)| Pattern::Mixed {
            random_fraction: f64::from(tenths) / 10.0,
            random_block: Bytes::from_kib(4),
            same_open_file,
        }),
    ];
    let sharing = prop_oneof![
        Just(Sharing::OwnFile),
        Just(Sharing::SharedFile),
        Just(Sharing::SharedOpenFile)
    ];
    let access = prop_oneof![Just(AccessMethod::Read), Just(AccessMethod::Mmap)];
    let hint = prop_oneof![Just(Hint::None), Just(Hint::Sequential), Just(Hint::Random)];
    (pattern, sharing, access, hint, 1u32..9, 1u32..4, 0u64..9, 16u64..99).prop_map(
        |(pattern, sharing, access, hint, readers, files, think, pages)| Workload {
            readers,
            sharing,
            access,
            hint,
            files_per_reader: match pattern {
                Pattern::Interleaved { .. } => 1,
                _ => files,
            },
            think: Nanos::from_micros(think * 10),
            file_size: Some(Bytes::from_kib(4 * pages * u64::from(readers))),
            ..Workload::new("w", pattern, Bytes::from_kib(4))
        },
    )
}

proptest! {
    /// Any workload can be exported as a job file, which parses to the same workload, or, for a
    /// pattern that fio lacks, has logs with the same requests.
    #[test]
    fn what_is_exported_is_the_same_workload(workload in any_workload()) {
        prop_assume!(workload.validate().is_ok());
        let exported = export_fio(&workload, Bytes::from_mib(1), 5).unwrap();
        if exported.logs.is_empty() {
            let back = parse(&exported.jobs).unwrap().groups()[0].native("w").unwrap();
            prop_assert_eq!(back, workload);
            return Ok(());
        }
        prop_assert_eq!(exported.logs.len(), workload.readers as usize);
        for (reader, (name, log)) in (0..).zip(&exported.logs) {
            let line = format!("read_iolog={}", name);
            prop_assert!(exported.jobs.lines().any(|written| written == line));
            let sizes = vec![workload.file_size.unwrap(); workload.files_per_reader as usize];
            let blocks = sizes.iter().map(|size| size.get() as usize / 4096).sum();
            let expected: Vec<(u64, u64)> = workload
                .accesses(reader, &sizes, 5)
                .unwrap()
                .take(if matches!(workload.pattern, Pattern::Zipf { .. }) { blocks } else { MANY })
                .map(|access| (access.offset.get(), access.length.get()))
                .collect();
            let reads = log.lines().filter_map(|line| line.split_once(" read ")).map(|(_, rest)| {
                let (offset, length) = rest.split_once(' ').unwrap();
                (offset.parse().unwrap(), length.parse().unwrap())
            });
            let reads = reads.collect::<Vec<(u64, u64)>>();
            prop_assert!(!reads.is_empty());
            prop_assert_eq!(reads, expected);
        }
    }
}

/// Checks that a parsed job file can be written, parsed again, and run by fio on some files.
fn keeps(file: &JobFile) {
    for group in file.groups() {
        let again = parse(&group.to_text()).unwrap();
        assert_eq!(again.groups()[0].to_text(), group.to_text());
        if let Ok(workload) = group.native("x") {
            let back = again.groups()[0].native("x").unwrap();
            assert_eq!(back, workload);
        }
        drop(group.pitfalls());
        if group.readers() > 1024 {
            continue;
        }
        let paths: Vec<String> =
            group.ground().files.iter().map(|file| file.name.clone()).collect();
        let stands = stands(&paths, Bytes::from_mib(64));
        if let Ok(job) = group.for_fio(&stands, &conditions(1.0)) {
            assert!(parse(&job).is_ok() || paths.iter().any(|path| path.contains(['\\', '$'])));
        }
        let outside = Outside::Fio { jobs: group.to_text() };
        if let Ok(workload) = Workload::from_program("x", outside) {
            assert_eq!(Workload::from_toml(&workload.to_toml()).as_ref(), Ok(&workload));
        }
    }
}

#[test]
fn no_job_file_panics() {
    let corpus = fuzz::seeds(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeds/fio"));
    assert!(corpus.len() >= 5, "{} seeds", corpus.len());
    let around = FioEnvironment {
        variable: &|name| (name.len() % 2 == 0).then(|| "4k".to_owned()),
        include: &|name, _| match name.len() % 3 {
            0 => Err("no such file".to_owned()),
            1 => Ok(Included { file: name.to_owned(), text: format!("include {name}") }),
            _ => Ok(Included { file: name.to_owned(), text: "bs=8k\nrw=randread\n".to_owned() }),
        },
    };
    let inputs = fuzz::run(fuzz::budget(), &corpus, |input| {
        if let Ok(file) = JobFile::parse(&String::from_utf8_lossy(input), &around) {
            keeps(&file);
        }
    });
    assert!(inputs > corpus.len() as u64);
}

/// Parses the examples of fio's own repository, in the directory `FOREREAD_FIO_EXAMPLES`.
#[test]
fn every_example_of_fio_s_is_run_or_refused_by_line() {
    let Some(dir) = std::env::var_os("FOREREAD_FIO_EXAMPLES") else {
        println!("SKIP every_example_of_fio_s_…: FOREREAD_FIO_EXAMPLES names no directory");
        return;
    };
    let (mut run, mut native, mut refused) = (0, 0, 0);
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let Ok(text) = std::fs::read_to_string(entry.path()) else { continue };
        if entry.path().extension().is_none_or(|end| end != "fio") {
            continue;
        }
        let name = entry.file_name().into_string().unwrap();
        match parse(&text) {
            Ok(file) => {
                keeps(&file);
                let own = file.groups().iter().filter(|group| group.native("x").is_ok()).count();
                println!("{name}: {} groups, {own} of them native too", file.groups().len());
                (run, native) = (run + 1, native + usize::from(own > 0));
            }
            Err(problem) => {
                let message = problem.to_string();
                println!("{name}: {message}");
                assert!(message.starts_with("line "), "{name}: {message}");
                refused += 1;
            }
        }
    }
    println!("{run} run by fio ({native} natively, too), {refused} refused");
}
