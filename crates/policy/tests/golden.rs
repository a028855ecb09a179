//! Compares all decisions with those recorded on a real Linux 6.18 kernel.

use foreread_policy::golden::{self, Difference, GoldenError, SequenceResult, Verdict};
use serde_json::{Value, json};

const RECORDING: &str = include_str!("data/linux-6.18-readahead-golden.json");

#[test]
fn every_recorded_decision_is_reproduced() {
    let results = golden::run(RECORDING).expect("the recording is readable");
    let failed: Vec<_> = results.iter().filter(|result| !result.passed()).collect();
    for result in &failed {
        println!("{result}");
    }
    assert_eq!(results.len(), 204);
    assert!(failed.is_empty(), "{} of {} sequences differ", failed.len(), results.len());
}

/// Random sequences of calls and advice on several open files and a mapping, recorded on ext4 (with
/// `data=journal` for single pages) and XFS on a loop device. Each was recorded twice with equal
/// results; the recorder waited after each call until no request was in flight.
const RANDOM: [&str; 4] = [
    include_str!("data/random/large-folios-5-pages.json"),
    include_str!("data/random/large-folios-40-pages.json"),
    include_str!("data/random/large-folios-1000-pages.json"),
    include_str!("data/random/single-pages-40-pages.json"),
];

#[test]
fn random_sequences_are_reproduced() {
    let results = RANDOM.iter().flat_map(|text| golden::run(text).expect("a recording"));
    let results: Vec<_> = results.collect();
    let failed: Vec<_> = results.iter().filter(|result| !result.passed()).collect();
    for result in &failed {
        println!("{result}");
    }
    assert_eq!(results.len(), 219);
    assert!(failed.is_empty(), "{} of {} sequences differ", failed.len(), results.len());
}

/// Returns the distance in pages from the reader to the end of the window, for each decision of a
/// recorded sequential stream.
fn reach(decisions: &Value) -> Vec<u64> {
    let decisions = decisions.as_array().expect("decisions");
    let end = |decision: &Value| {
        let submissions = decision[4].as_array().into_iter().flatten();
        submissions.filter_map(|one| Some(one[1].as_u64()? + one[2].as_u64()?)).max()
    };
    decisions.iter().filter_map(|one| Some(end(one)? - one[1].as_u64()?)).collect()
}

/// The memory formula of `units` assumes that the kernel has at most two windows ahead of the
/// reader of a sequential stream, and that it reaches two.
#[test]
fn a_stream_has_two_windows_ahead_at_most() {
    let recording: Value = serde_json::from_str(RECORDING).expect("JSON");
    let mut full = 0;
    for (config, patterns) in recording["results"].as_object().expect("configurations") {
        let kib = config.split("/ra").nth(1).and_then(|ra| ra.strip_suffix('k')).expect("a size");
        let kib: u64 = kib.parse().expect("KiB");
        for pattern in ["seq4k_from0", "seq64k_from0", "seq4k_from_mid"] {
            let most = reach(&patterns[pattern]["decisions"]).into_iter().max();
            let bound = units::WINDOWS_PER_STREAM * kib / 4;
            let most = most.expect("decisions");
            assert!(most <= bound, "{config} {pattern}: {most} pages ahead, {bound} at most");
            full += u32::from(most == bound);
        }
    }
    assert!(full >= 9, "only {full} sequences reach two windows");
}

/// Returns a recording of one sequence.
fn recording(pages: u64, config: &str, ops: Value, decisions: Value, cached: u64) -> String {
    let device = format!("max_sectors_kb=1280, so io_pages=320; the file is {pages} pages");
    let result = json!({ "decisions": decisions, "cached_pages_after": cached });
    json!({
        "device": device,
        "patterns": { "it": { "ops": ops } },
        "results": { config: { "it": result } },
    })
    .to_string()
}

fn only(recording: &str) -> SequenceResult {
    let results = golden::run(recording).expect("the recording is readable");
    assert_eq!(results.len(), 1);
    results[0].clone()
}

/// Behaviour that was recorded in addition to the sequences.
#[test]
fn recorded_facts_hold() {
    let facts = [
        // 128 KiB read of a file of 20 pages: the request is not cut off at the end of the file,
        // and the mark submits a window beyond it.
        recording(
            20,
            "large_folio/ra128k",
            json!([["open", 0], ["list", [[0, 0, 131_072]]]]),
            json!([
                ["sync", 0, 32, -1, [["order", 0, 32, 16, 0]]],
                ["async", 16, 16, -1, [["order", 32, 32, 32, 2]]],
            ]),
            20,
        ),
        // A window of one page and a larger call.
        recording(
            49_152,
            "large_folio/ra4k",
            json!([["open", 0], ["list", [[0, 1_048_576, 65_536]]]]),
            json!([["sync", 256, 16, -1, [["plain", 256, 16, 0]]]]),
            16,
        ),
    ];
    for fact in facts {
        let result = only(&fact);
        assert!(result.passed(), "{result}");
    }
}

#[test]
fn without_a_window_every_page_is_a_request() {
    let sync = |page: u64| json!(["sync", page, 16 - page, -1, [["plain", page, 1, 0]]]);
    let decisions: Vec<_> = (0..16).map(sync).collect();
    let ops = json!([["open", 0], ["list", [[0, 0, 65_536]]]]);
    let result = only(&recording(49_152, "order0/ra0k", ops, json!(decisions), 16));
    assert!(result.passed(), "{result}");
}

#[test]
fn the_first_difference_is_reported() {
    let ops = json!([["open", 0], ["run", 3, [[0, 0, 4096, 4096]]]]);
    let first = json!(["sync", 0, 1, -1, [["order", 0, 4, 3, 0]]]);
    let wrong = json!(["async", 1, 1, 4096, [["order", 4, 8, 8, 3]]]);
    let decisions = json!([first, wrong]);
    let result = only(&recording(49_152, "large_folio/ra128k", ops.clone(), decisions, 12));
    let Verdict::Differs(Difference::Decision { nth: 1, .. }) = result.verdict else {
        panic!("{result}");
    };
    let text = result.to_string();
    assert!(text.contains("DIFFERS large_folio/ra128k it: decision 1"), "{text}");
    assert!(text.contains("replayed [\"async\",1,1,4096,[[\"order\",4,8,8,2]]]"), "{text}");

    let right = json!(["async", 1, 1, 4096, [["order", 4, 8, 8, 2]]]);
    let short = only(&recording(49_152, "large_folio/ra128k", ops.clone(), json!([first]), 12));
    assert!(short.to_string().contains("recorded none"), "{short}");
    let decisions = json!([first, right]);
    let cached = only(&recording(49_152, "large_folio/ra128k", ops, decisions, 13));
    assert_eq!(cached.verdict, Verdict::Differs(Difference::Cached { recorded: 13, made: 12 }));
}

#[test]
fn an_unusable_sequence_is_reported() {
    let odd = [
        ("order2/ra128k", json!([["open", 0]]), "the configuration should be"),
        ("order0/ra128k", json!([["dance"]]), "cannot read the operation [\"dance\"]"),
        ("order0/ra128k", json!([["list", [[0, 0, 1]]]]), "file 0 is not open"),
        ("order0/ra128k", json!([["open", 0], ["madvise", 0, "RANDOM"]]), "file 0 is not mapped"),
        ("order0/ra128k", json!([["open", 0], ["fadvise", 0, "X", 0, 0]]), "no such advice"),
        ("order0/ra128k", json!([["run", u64::MAX, [[0, 0, 1, 1]]]]), "too many accesses"),
    ];
    for (config, ops, reason) in odd {
        let result = only(&recording(100, config, ops, json!([]), 0));
        assert!(result.to_string().contains(reason), "{result}");
    }
    assert!(matches!(golden::run("{"), Err(GoldenError::Schema(_))));
    let empty = json!({ "device": "max_sectors_kb=4, 9 pages", "patterns": {}, "results": {} });
    assert!(matches!(golden::run(&empty.to_string()), Err(GoldenError::Empty)));
    let vague = json!({ "device": "a disk", "patterns": {}, "results": {} });
    let error = golden::run(&vague.to_string()).map_err(|error| error.to_string());
    assert!(error.is_err_and(|error| error.contains("max_sectors_kb=N")));
}

/// Advice and faults that are not in the recorded sequences; expectations from the kernel's source.
#[test]
fn further_sequences_follow_the_rules() {
    let huge = recording(
        4096,
        "large_folio/ra128k",
        json!([
            ["open", 0],
            ["mmap", 0],
            ["madvise", 0, "HUGEPAGE"],
            ["list", [["m0", 6_000_000, 1]]]
        ]),
        json!([["direct", 1024, null, null, [["order", 1024, 1024, 512, 9]]]]),
        1024,
    );
    let dropped = recording(
        4096,
        "order0/ra128k",
        json!([
            ["open", 0],
            ["fadvise", 0, "RANDOM", 0, 0],
            ["list", [[0, 0, 65_536]]],
            ["fadvise", 0, "DONTNEED", 4096, 8192],
            ["begin_observe"],
            ["list", [[0, 0, 65_536]]],
        ]),
        json!([["sync", 1, 15, 65_536, [["plain", 1, 15, 0]]]]),
        16,
    );
    let part = recording(
        4096,
        "order0/ra128k",
        json!([
            ["open", 0],
            ["mmap", 0],
            ["madvise", 0, "RANDOM", 0, 409_600],
            ["list", [["m0", 40_960, 1], ["m0", 819_200, 1]]],
        ]),
        json!([["direct", 184, null, null, [["order", 184, 32, 8, 0], ["plain", 184, 32, 8]]]]),
        33,
    );
    for sequence in [huge, dropped, part] {
        let result = only(&sequence);
        assert!(result.passed(), "{result}");
    }
}
