//! The policy parser never panics, and the line number of each error is within the text.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may panic

use std::path::Path;

use foreread_doctor::check::CompliancePolicy;
use testkit::fuzz;

#[test]
fn policies_are_survived() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeds/policy");
    let corpus = fuzz::seeds(&dir);
    assert!(!corpus.is_empty());
    let inputs = fuzz::run(fuzz::budget(), &corpus, |input| {
        let text = String::from_utf8_lossy(input);
        if let Err(error) = CompliancePolicy::parse(&text) {
            let lines = text.lines().count().max(1) + 1;
            assert!((1..=lines).contains(&error.line), "{error}");
            assert!(!error.problem.is_empty());
        }
    });
    println!("policy: {inputs} inputs");
}

#[test]
fn the_seeds_are_policies() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeds/policy");
    for seed in fuzz::seeds(&dir) {
        CompliancePolicy::parse(std::str::from_utf8(&seed).unwrap()).unwrap();
    }
}
