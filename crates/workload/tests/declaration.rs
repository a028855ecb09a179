//! Declarations as users write them, and the messages for invalid ones.

#![allow(clippy::unwrap_used)] // A test may panic.

use foreread_workload::{AccessMethod, Pattern, Sharing, Workload};
use units::{Bytes, Nanos};

fn problem(text: &str) -> String {
    Workload::from_toml(text).unwrap_err().to_string()
}

#[test]
fn a_short_declaration_has_defaults() {
    let text = "name = \"scan\"\npattern = \"sequential\"\nblock = \"64K\"\n";
    let workload = Workload::from_toml(text).unwrap();
    assert_eq!(workload, Workload::new("scan", Pattern::Sequential, Bytes::from_kib(64)));
}

#[test]
fn a_full_declaration_is_understood() {
    let text = r#"
        name = "scans-and-lookups"
        pattern = "mixed"
        random_fraction = 0.25
        random_block = "8K"
        same_open_file = true
        block = "128KiB"
        readers = 4
        sharing = "shared-file"
        files_per_reader = 2
        think = "250us"
        access = "mmap"
        hint = "random"
        layout = "interleaved"
        file_size = "1.5G"
    "#;
    let workload = Workload::from_toml(text).unwrap();
    let Pattern::Mixed { random_fraction, random_block, same_open_file } = workload.pattern else {
        panic!("{:?}", workload.pattern);
    };
    assert_eq!((random_fraction, random_block), (0.25, Bytes::from_kib(8)));
    assert!(same_open_file);
    assert_eq!(workload.sharing, Sharing::SharedFile);
    assert_eq!(workload.access, AccessMethod::Mmap);
    assert_eq!(workload.think, Nanos::from_micros(250));
    assert_eq!(workload.file_size, Some(Bytes::from_mib(1536)));
    assert_eq!((workload.files(), workload.file_of(3, 1)), (2, 1));
}

#[test]
fn mistakes_are_named() {
    let scan = "name = \"scan\"\npattern = \"sequential\"\nblock = \"64K\"\n";
    let message = problem(&format!("{scan}raeders = 8\n"));
    assert!(message.contains("raeders") && message.contains("readers"), "{message}");
    let message = problem("name = \"x\"\npattern = \"sequential\"\nblock = \"64\"\n");
    assert!(message.contains("block") && message.contains("no unit"), "{message}");
    let message = problem("name = \"x\"\npattern = \"zigzag\"\nblock = \"64K\"\n");
    assert!(message.contains("zigzag") && message.contains("seek-and-read"), "{message}");
    let message = problem("name = \"x\"\npattern = \"stride\"\nblock = \"64K\"\n");
    assert!(message.contains("step = \"256K\""), "{message}");
    let message = problem(&format!("{scan}theta = 0.9\n"));
    assert!(message.contains("theta") && message.contains("sequential"), "{message}");
    let message = problem(&format!("{scan}readers = -1\n"));
    assert!(message.contains("-1"), "{message}");
    let message = problem(&format!("{scan}think = \"5 parsecs\"\n"));
    assert!(message.contains("think") && message.contains("parsecs"), "{message}");
    let message = problem("pattern = \"sequential\"\nblock = \"64K\"\n");
    assert!(message.contains("name"), "{message}");
}

#[test]
fn impossible_combinations_are_refused() {
    let refused = |workload: Workload, word: &str| {
        let message = workload.validate().unwrap_err().to_string();
        assert!(message.contains(word), "{message}");
    };
    let block = Bytes::from_kib(64);
    let with = |pattern| Workload::new("tried", pattern, block);
    let scan = || with(Pattern::Sequential);
    refused(Workload { readers: 0, ..scan() }, "readers");
    refused(Workload { block: Bytes::ZERO, ..scan() }, "block");
    refused(Workload { files_per_reader: 0, ..scan() }, "files_per_reader");
    refused(Workload { readers: 1000, files_per_reader: 1000, ..scan() }, "files_per_reader");
    refused(Workload { file_size: Some(Bytes::from_kib(4)), ..scan() }, "file_size");
    refused(Workload { name: "../etc".into(), ..scan() }, "name");
    refused(with(Pattern::Stride { step: block }), "sequential");
    refused(with(Pattern::Zipf { theta: f64::NAN }), "theta");
    refused(with(Pattern::Interleaved { streams: 1 }), "streams");
    let streams = with(Pattern::Interleaved { streams: 4 });
    refused(Workload { files_per_reader: 2, ..streams }, "one open file");
    let mixed = |random_fraction| Pattern::Mixed {
        random_fraction,
        random_block: block,
        same_open_file: true,
    };
    refused(with(mixed(0.0)), "random_fraction");
    refused(with(mixed(1.0)), "random_fraction");
    refused(with(Pattern::SeekAndRead { blocks: 0 }), "blocks");
    refused(with(Pattern::Disorder { span: 1 }), "span");
}

#[test]
fn the_suite_answers_the_usual_questions() {
    let suite = Workload::suite();
    let names: Vec<&str> = suite.iter().map(|workload| workload.name.as_str()).collect();
    assert_eq!(names, ["seq-1", "seq-8", "rand-pread", "rand-mmap", "mixed", "stride"]);
    for workload in &suite {
        workload.validate().unwrap();
        assert_eq!(&Workload::from_toml(&workload.to_toml()).unwrap(), workload);
        assert_eq!(&Workload::named(&workload.name).unwrap(), workload);
        assert_eq!(workload.hint, foreread_workload::Hint::None, "hints hide read-ahead");
    }
    assert_eq!(Workload::named("seq-8").unwrap().streams(), 8);
}

#[test]
fn a_mistyped_name_finds_its_neighbour() {
    let message = Workload::named("rand-pred").unwrap_err().to_string();
    assert!(message.contains("did you mean \"rand-pread\"?"), "{message}");
    let message = Workload::named("oltp").unwrap_err().to_string();
    assert!(!message.contains("did you mean") && message.contains("seq-1"), "{message}");
}
