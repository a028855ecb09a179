//! Real workloads: cold cache, reader engines, latency histograms, device counters.
//!
//! A [`Dataset`] is what can be read: files of foreread's own, laid out once and used by many
//! trials, or something that is there already and is only ever read. [`run_trial`] runs one
//! workload on it once and brings back a [`Sample`]: raw counts and histograms, with everything
//! that speaks against them as typed [`Disturbance`]s. It judges nothing; whoever repeats trials
//! does.

mod cancel;
mod cold;
mod dataset;
mod device;
mod direct;
mod disturbance;
mod error;
mod memory;
mod options;
mod outside;
pub mod parse;
mod probe;
mod reader;
mod sample;
mod series;
mod source;
mod threads;
mod timeline;
mod tool_report;
mod trial;
mod watch;
mod write;

pub use cancel::Cancel;
pub use cold::{ColdProof, ResidencyMethod};
pub use dataset::{Dataset, LayOutOptions, LayOutProgress};
pub use device::DeviceDelta;
pub use direct::{DirectFile, DirectTimes};
pub use disturbance::Disturbance;
pub use error::BenchError;
pub use memory::{MEMORY_LEAST, MemoryAccount, check_memory_limit};
pub use options::{CacheStart, TrialOptions};
pub use outside::find_program;
pub use probe::{ReadProbe, nameless, probe};
pub use sample::{ClassSample, CpuTime, ReaderSample, Sample};
pub use series::Series;
pub use stats::LatencyHistogram;
pub use timeline::{DeviceMoment, Timeline};
pub use tool_report::ToolReport;
pub use trial::run_trial;
