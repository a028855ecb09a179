//! Profiles a command, as `foreread profile` does, for tests of this crate.
#![allow(clippy::print_stdout)] // it prints its result

use std::error::Error;

use foreread_profile::{
    ModelChoice, RecordTarget, Recorder, TextOptions, analyse, profile_json, profile_text,
};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let recorder = Recorder::new(RecordTarget::Command(words))?.with_output_to_stderr();
    let (recording, _) = recorder.record(None, || None)?;
    let analysis = analyse(&recording, &ModelChoice::Measured);
    if std::env::var_os("PROFILE_JSON").is_some() {
        println!("{}", serde_json::to_string(&profile_json(&recording, &analysis))?);
    } else {
        println!("{}", profile_text(&recording, &analysis, TextOptions { stacks: true }));
    }
    Ok(())
}
