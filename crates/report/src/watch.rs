//! The tables of `watch`: devices, and the streams on them.

use daemon::{DeviceRates, StreamView, WatchView};

use crate::clean;
use crate::terminal_text::plain_grid;

/// A table as text: a header, and a row of cells for each item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells {
    pub head: &'static [&'static str],
    pub rows: Vec<Vec<String>>,
}

const DEVICES: &[&str] =
    &["device", "queue", "reads/s", "MiB/s", "KiB/read", "ms/read", "writes/s", "MiB/s", "busy"];

const STREAMS: &[&str] = &[
    "process",
    "pid",
    "pattern",
    "window KiB",
    "of",
    "misses/s",
    "waits/s",
    "ms/s",
    "read MiB/s",
    "used MiB",
    "wasted",
    "thrashed",
    "file",
];

/// Returns the table of devices, as in iostat and gstat.
pub fn device_cells(devices: &[DeviceRates]) -> Cells {
    let or_dash =
        |number: Option<f64>| number.map_or_else(|| "-".to_owned(), |n| format!("{n:.1}"));
    let row = |one: &DeviceRates| {
        vec![
            clean::plain(&one.name),
            format!("{:.1}", one.queue),
            format!("{:.0}", one.reads_s),
            format!("{:.1}", one.read_mib_s),
            or_dash(one.mean_read_kib),
            or_dash(one.read_ms),
            format!("{:.0}", one.writes_s),
            format!("{:.1}", one.write_mib_s),
            format!("{:.0} %", one.busy * 100.0),
        ]
    };
    Cells { head: DEVICES, rows: devices.iter().map(row).collect() }
}

/// Returns the table of streams, longest wait first.
pub fn stream_cells(streams: &[StreamView]) -> Cells {
    let row = |one: &StreamView| {
        let limit = match (one.random_advice, one.limit_kib) {
            (true, _) => "random".to_owned(),
            (false, Some(limit)) if one.bdi_kib != Some(limit) => format!("{limit} *"),
            (false, Some(limit)) => limit.to_string(),
            (false, None) => "-".to_owned(),
        };
        let mapped = if one.mapped { ", mmap" } else { "" };
        vec![
            clean::plain(&one.comm),
            one.pid.to_string(),
            format!("{}{mapped}", one.pattern),
            one.window_kib.to_string(),
            limit,
            format!("{:.0}", one.misses_s),
            format!("{:.0}", one.stalls_s),
            format!("{:.1}", one.stalled_ms_s),
            format!("{:.1}", one.submitted_mib_s),
            format!("{:.1}", one.used_mib),
            format!("{:.1}", one.wasted_mib),
            one.thrashed.to_string(),
            one.path
                .as_deref()
                .map_or_else(|| format!("inode {} on {}", one.inode, one.device), clean::plain),
        ]
    };
    Cells { head: STREAMS, rows: streams.iter().map(row).collect() }
}

/// Returns the whole view as plain text.
pub fn watch_text(view: &WatchView) -> String {
    let mut text = String::new();
    if !view.devices.is_empty() {
        text.push_str(&table(&device_cells(&view.devices)));
        text.push('\n');
    }
    if view.streams.is_empty() {
        text.push_str("no file was read from a disk\n");
    } else {
        text.push_str(&table(&stream_cells(&view.streams)));
        text.push_str(
            "\nwindow: last one submitted / limit of the open file (* differs from the \
             bdi's)\nused, wasted: since the stream was first observed; wasted is an estimate \
             (docs/book: Watching)\n",
        );
    }
    if view.lost_events > 0 {
        text.push_str(&format!("{} events were lost: all counts are too low\n", view.lost_events));
    }
    text
}

/// Formats a table: names are left-aligned, numbers right-aligned.
fn table(cells: &Cells) -> String {
    let last = cells.head.len().saturating_sub(1);
    let lines = plain_grid(cells.head, cells.rows.clone(), |column| (1..last).contains(&column));
    lines.iter().map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_read_is_said_and_losses_are_not_hidden() {
        let view = WatchView {
            at_s: 1.0,
            interval_s: 1.0,
            devices: Vec::new(),
            streams: Vec::new(),
            lost_events: 3,
        };
        let text = watch_text(&view);
        assert!(text.contains("no file was read from a disk"), "{text}");
        assert!(text.contains("3 events were lost"), "{text}");
    }

    #[test]
    fn columns_stand_in_line() {
        let cells = Cells {
            head: &["name", "count", "file"],
            rows: vec![vec!["a".into(), "10000".into(), "/x".into()]],
        };
        assert_eq!(table(&cells), "name  count  file\na     10000  /x\n");
    }
}
