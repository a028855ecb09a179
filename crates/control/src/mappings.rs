//! Selects the windows of the mappings on a device.

use std::collections::BTreeMap;

use units::{Nanos, Pages};

use super::controller::BdiController;
use super::gain::{MeanGain, MeasuredGain};
use super::inputs::{FileKey, Inputs};
use super::memory::room;
use super::random_faults::MappingView;
use super::windows::file_view;
use policy::OpenFileId;

/// Totals of the mappings on a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mappings {
    number: u64,
    /// The size of their files, each counted once.
    pages: Pages,
    gains: MeanGain,
    /// The number of mappings with smaller windows than their original ones that are being read.
    reduced: usize,
}

impl BdiController {
    pub(super) fn mappings(&self, now: Nanos) -> Mappings {
        let mapped = || self.streams.values().filter(|stream| stream.mapped);
        let sizes = mapped().filter_map(|stream| Some((stream.file, stream.facts?.file_pages)));
        let measured = mapped().filter_map(|stream| stream.faults.measured());
        Mappings {
            number: mapped().count() as u64,
            pages: sizes.collect::<BTreeMap<FileKey, Pages>>().into_values().sum(),
            gains: measured.fold(MeanGain::default(), MeanGain::with),
            reduced: mapped().filter(|one| !one.is_idle(now) && one.faults.is_reduced()).count(),
        }
    }

    /// Runs the next step of a mapping that is read at random; returns the gain of its window once
    /// that is known.
    pub(super) fn step_mapping(
        &mut self,
        key: OpenFileId,
        mappings: &Mappings,
        inputs: &Inputs,
    ) -> Option<MeasuredGain> {
        let features = self.bounds.features;
        let stream = self.streams.get(&key).filter(|stream| stream.mapped)?;
        let (facts, original) = stream.facts.zip(stream.original)?;
        // The window of a file without a descriptor cannot be set.
        if facts.only_mapped || !features.what_if || !features.mappings {
            return None;
        }
        let room = room(inputs, &facts, &self.tuning);
        let cache = Pages::new(room.get() / mappings.number.max(1));
        let pass_time = || self.device_times(facts.page).page * mappings.pages.get();
        let mapping = MappingView {
            original,
            waits: &self.fault_waits,
            gains: mappings.gains,
            file: file_view(&facts, cache, &self.bounds),
            pass_time: (mappings.pages <= room).then(pass_time),
            parallel: self.parallel(),
            scores: &self.scores,
            may_inspect: !self.climb.is_trying(),
            // Where that matters, this mapping itself has a smaller one.
            others_are_unchanged: mappings.reduced <= 1,
            passed: self.counts.progress,
        };
        self.streams.get_mut(&key)?.faults.step(inputs.now, &mapping, features.trials)
    }
}
