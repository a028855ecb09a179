//! Groups waits into samples for flame graphs.

use std::collections::{BTreeMap, HashMap};

use units::{Bytes, Nanos};

use crate::analysis::ProfileAnalysis;
use crate::recording::ProfileRecording;

/// Properties that the waits of a sample share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampleKey {
    /// Index of the stack in the recording.
    pub stack: u32,
    /// Index of the file; `None` if unknown.
    pub inode: Option<u32>,
    /// Name of the rule that explains the waits; `None` without a diagnosis.
    pub rule: Option<&'static str>,
    pub tid: u32,
}

/// Sums over waits with the same key.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SampleValues {
    pub waits: u64,
    pub waited: Nanos,
    /// Predicted savings.
    pub saved: Nanos,
    /// Bytes submitted to be read.
    pub bytes: Bytes,
}

/// A thread ID and the index of a file.
type ThreadFile = (u32, Option<u32>);

/// Returns, by index of the wait, the rule that explains it and the share of its time that the fix
/// saves. The gain of a diagnosis is spread over its waits in proportion to their time.
pub(crate) fn rules_of_waits(analysis: &ProfileAnalysis) -> HashMap<u32, (&'static str, f64)> {
    let mut rules = HashMap::new();
    for one in &analysis.diagnoses {
        let touched = one.stream.iter().chain(&one.finding.others);
        let streams = touched.map(|place| &analysis.streams[*place]);
        let waited: Nanos = streams.clone().map(|stream| stream.waited).sum();
        let share = one.gain.saved().get() as f64 / waited.get().max(1) as f64;
        for wait in streams.flat_map(|stream| &stream.waits) {
            rules.entry(*wait).or_insert((one.rule.name, share.min(1.0)));
        }
    }
    rules
}

/// Groups waits by stack, file, diagnosis and thread. Submitted bytes count for the next wait of
/// the same thread and file, or for the last wait if there is no next one.
pub fn wait_samples(
    recording: &ProfileRecording,
    analysis: &ProfileAnalysis,
) -> BTreeMap<SampleKey, SampleValues> {
    let rules = rules_of_waits(analysis);
    let mut samples: BTreeMap<SampleKey, SampleValues> = BTreeMap::new();
    let mut of_file: HashMap<ThreadFile, Vec<(Nanos, SampleKey)>> = HashMap::new();
    for (place, wait) in recording.waits.iter().enumerate() {
        let rule = rules.get(&(place as u32));
        let key = SampleKey {
            stack: wait.stack,
            inode: wait.inode,
            rule: rule.map(|rule| rule.0),
            tid: wait.tid,
        };
        let values = samples.entry(key).or_default();
        values.waits += 1;
        values.waited += wait.blocked;
        values.saved += rule.map_or(Nanos::ZERO, |rule| wait.blocked.scaled(rule.1));
        of_file.entry((wait.tid, wait.inode)).or_default().push((wait.end, key));
    }
    for waits in of_file.values_mut() {
        waits.sort_unstable();
    }
    for pages in &recording.submitted {
        let Some(waits) = of_file.get(&(pages.tid, Some(pages.inode))) else { continue };
        let next = waits.partition_point(|(end, _)| *end < pages.at);
        if let Some((_, key)) = waits.get(next).or_else(|| waits.last()) {
            samples.entry(*key).or_default().bytes += pages.length;
        }
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{StorageWait, SubmittedPages, WaitClass};
    use crate::{ModelChoice, analyse};

    #[test]
    fn bytes_belong_to_the_wait_that_follows() {
        let mut recording = ProfileRecording::default();
        for (stack, end) in [(0, 10), (1, 20)] {
            recording.waits.push(StorageWait {
                end: Nanos::from_millis(end),
                blocked: Nanos::from_millis(1),
                tid: 1,
                pid: 1,
                stack,
                class: WaitClass::Miss,
                inode: Some(0),
                file: 0,
                offset: Bytes::ZERO,
            });
        }
        for (at, kib) in [(5, 1), (15, 2), (30, 4)] {
            recording.submitted.push(SubmittedPages {
                at: Nanos::from_millis(at),
                tid: 1,
                inode: 0,
                offset: Bytes::ZERO,
                length: Bytes::from_kib(kib),
                is_window: true,
            });
        }
        let samples = wait_samples(&recording, &analyse(&recording, &ModelChoice::None, &[]));
        let bytes: Vec<u64> = samples.values().map(|one| one.bytes.get() >> 10).collect();
        assert_eq!(bytes, [1, 6]);
    }
}
