//! Human-readable descriptions of devices.

use std::fmt::Write as _;

use super::raid::Level;
use super::{DeviceSpec, Spec};

impl Spec {
    /// Returns a description of a few lines.
    pub fn describe(&self) -> String {
        let mut text = format!("{}: {}\n", self.name, self.summary);
        let (mut indent, mut device) = (1, Some(&self.device));
        while let Some(this) = device {
            let _ = writeln!(text, "{:width$}{}", "", line(this), width = 2 * indent);
            indent += 1;
            device = this.inner().map(|(_, inner)| inner);
        }
        let peak = self.peak();
        let _ = writeln!(
            text,
            "  {} usable, at most {} and {:.0} requests/s; host: requests up to {}, {} waiting, \
             scheduler {}",
            self.capacity().rounded(),
            peak.throughput,
            peak.requests,
            self.host.max_request,
            self.host.nr_requests,
            self.host.scheduler.name(),
        );
        for source in &self.sources {
            let _ = writeln!(text, "  source: {source}");
        }
        text
    }
}

fn line(device: &DeviceSpec) -> String {
    match device {
        DeviceSpec::Hdd(spec) => format!(
            "disk of {}, {} rpm, seeks {} ms on average, {} to {} MB/s, {} commands queued",
            spec.capacity.rounded(),
            spec.rpm,
            spec.seek_average_ms,
            spec.outer_mb_s,
            spec.inner_mb_s,
            spec.queue_depth,
        ),
        DeviceSpec::Flash(spec) => format!(
            "flash of {}, {} dies that read in {} µs, link of {} MB/s",
            spec.capacity.rounded(),
            spec.dies,
            spec.read_us,
            spec.link_mb_s,
        ),
        DeviceSpec::Volume(spec) => format!(
            "volume of {}, latency {} ms, {} I/Os/s of up to {}, {} MiB/s (0: no limit)",
            spec.capacity.rounded(),
            spec.latency_ms,
            spec.iops,
            spec.accounting,
            spec.throughput_mib_s,
        ),
        DeviceSpec::Array(spec) => {
            let level = format!("{:?}", spec.level).to_lowercase();
            let copies = matches!(spec.level, Level::Raid1 | Level::Raid10);
            let policy =
                if copies { format!(", reads: {:?}", spec.read_policy) } else { String::new() };
            format!("{level} of {}, chunk {}{policy}", spec.members, spec.chunk)
        }
        DeviceSpec::Controller(spec) => format!(
            "controller: {} ms for each command, reads ahead {}, cache {}",
            spec.overhead_ms, spec.prefetch, spec.cache,
        ),
        DeviceSpec::Zero(spec) => {
            format!("null device of {} without service times", spec.capacity.rounded())
        }
    }
}
