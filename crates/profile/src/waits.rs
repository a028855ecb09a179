//! Separates waits for pages, which a replay simulates, from all other waits.

use std::collections::BTreeMap;

use units::Nanos;

use crate::recording::{FileAccess, ProfileRecording};

/// Waits for pages by thread, each as its end and its duration, sorted by end.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageWaits(BTreeMap<u32, Vec<(Nanos, Nanos)>>);

impl PageWaits {
    pub(crate) fn of(recording: &ProfileRecording) -> Self {
        let mut threads: BTreeMap<u32, Vec<(Nanos, Nanos)>> = BTreeMap::new();
        for wait in recording.waits.iter().filter(|wait| wait.class.is_for_pages()) {
            threads.entry(wait.tid).or_default().push((wait.end, wait.blocked));
        }
        for waits in threads.values_mut() {
            waits.sort_unstable();
        }
        Self(threads)
    }

    /// Returns how long an access waited for pages.
    pub(crate) fn waited(&self, access: &FileAccess) -> Nanos {
        let Some(waits) = self.0.get(&access.tid).filter(|_| access.blocked > Nanos::ZERO) else {
            return Nanos::ZERO;
        };
        let first = waits.partition_point(|(end, _)| *end < access.start);
        let within = waits[first..].iter().take_while(|(end, _)| *end <= access.end);
        within.map(|(_, blocked)| *blocked).sum::<Nanos>().min(access.end - access.start)
    }

    /// Returns the time of an access without its waits for pages. Other waits remain: reads of file
    /// system metadata take as long under any window.
    pub(crate) fn working(&self, access: &FileAccess) -> Nanos {
        (access.end - access.start).saturating_sub(self.waited(access))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{AccessKind, StorageWait, WaitClass};
    use units::Bytes;

    #[test]
    fn only_waits_for_pages_within_the_access_count() {
        let wait = |end, blocked, class| StorageWait {
            end: Nanos::new(end),
            blocked: Nanos::new(blocked),
            tid: 1,
            pid: 1,
            stack: 0,
            class,
            inode: Some(0),
            file: 7,
            offset: Bytes::ZERO,
        };
        let waits = vec![
            wait(5, 4, WaitClass::Miss),
            wait(30, 15, WaitClass::Miss),
            wait(50, 10, WaitClass::Metadata),
            wait(90, 10, WaitClass::InFlight),
        ];
        let recording = ProfileRecording { waits, ..ProfileRecording::default() };
        let waits = PageWaits::of(&recording);
        let access = FileAccess {
            blocked: Nanos::new(25),
            kind: AccessKind::Read,
            ..FileAccess::cached(Nanos::new(10), Nanos::new(60))
        };
        assert_eq!(waits.waited(&access), Nanos::new(15));
        assert_eq!(waits.working(&access), Nanos::new(35));
        let cached = FileAccess::cached(Nanos::new(10), Nanos::new(60));
        assert_eq!(waits.waited(&cached), Nanos::ZERO);
    }
}
