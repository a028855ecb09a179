//! Runs workloads and measures them: cold cache, readers, latency histograms, device counters.
//!
//! A [`Dataset`] is the data to read: foreread's own files, created once for many trials, or
//! existing data, which is only read. [`run_trial`] runs one workload on it once and returns a
//! [`Sample`]: raw counts and histograms, and each disturbance that invalidates them as a typed
//! [`Disturbance`]. The caller decides whether to repeat a trial.

mod cancel;
mod cold;
mod dataset;
mod device;
mod direct;
mod disturbance;
mod error;
mod input;
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
