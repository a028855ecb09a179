//! The decisions of a real Linux 6.18 kernel, one by one.

use foreread_policy::golden;

const RECORDING: &str = include_str!("data/linux-6.18-readahead-golden.json");

#[test]
fn every_recorded_decision_is_made_again() {
    let results = golden::run(RECORDING).expect("the recording is readable");
    let failed: Vec<_> = results.iter().filter(|result| !result.passed()).collect();
    for result in &failed {
        println!("{result}");
    }
    assert_eq!(results.len(), 204);
    assert!(failed.is_empty(), "{} of {} sequences differ", failed.len(), results.len());
}
