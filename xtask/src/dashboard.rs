//! The Grafana dashboard, made by code so that its panels look alike.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// Where the dashboard is kept, to be imported or provisioned.
pub const FILE: &str = "packaging/grafana/foreread.json";

/// Columns of Grafana's grid.
const GRID_WIDTH_COLUMNS: u64 = 24;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stat,
    Bars,
    Lines,
    Table,
}

struct Panel {
    title: &'static str,
    help: &'static str,
    kind: Kind,
    /// Grafana's name of the unit.
    unit: &'static str,
    width: u64,
    /// Expression and legend.
    queries: &'static [(&'static str, &'static str)],
}

/// Rows of panels, each with a heading.
const ROWS: &[(&str, &[Panel])] = &[
    (
        "Fleet",
        &[
            Panel {
                title: "Hosts",
                help: "Hosts that report metrics",
                kind: Kind::Stat,
                unit: "short",
                width: 6,
                queries: &[("count(foreread_host_info{instance=~\"$instance\"})", "")],
            },
            Panel {
                title: "Hosts that violate the policy",
                help: "foreread check --policy FILE on such a host names the rules",
                kind: Kind::Stat,
                unit: "short",
                width: 6,
                queries: &[(
                    "count(foreread_policy_violations{instance=~\"$instance\"} > 0) or vector(0)",
                    "",
                )],
            },
            Panel {
                title: "Drifted settings",
                help: "Settings that foreread applied and that have another value now",
                kind: Kind::Stat,
                unit: "short",
                width: 6,
                queries: &[("sum(foreread_settings_drifted{instance=~\"$instance\"})", "")],
            },
            Panel {
                title: "Oldest metrics",
                help: "Age of the oldest file of foreread doctor --metrics",
                kind: Kind::Stat,
                unit: "s",
                width: 6,
                queries: &[(
                    "max(time() - node_textfile_mtime_seconds{instance=~\"$instance\",\
                     file=~\"(.*/)?foreread\\\\.prom\"})",
                    "",
                )],
            },
            Panel {
                title: "Storage by origin of its read-ahead",
                help: "Who set the value: the kernel, udev, TuneD, …",
                kind: Kind::Bars,
                unit: "short",
                width: 8,
                queries: &[(
                    "sum by (origin) (foreread_storage_by_origin{instance=~\"$instance\"})",
                    "{{origin}}",
                )],
            },
            Panel {
                title: "Storage by read-ahead",
                help: "How many devices and mounts have each value, in bytes",
                kind: Kind::Bars,
                unit: "short",
                width: 8,
                queries: &[(
                    "count_values(\"read_ahead_bytes\", \
                     foreread_read_ahead_bytes{instance=~\"$instance\"})",
                    "{{read_ahead_bytes}}",
                )],
            },
            Panel {
                title: "Findings",
                help: "Problems that foreread doctor reports, by kind",
                kind: Kind::Bars,
                unit: "short",
                width: 8,
                queries: &[(
                    "sum by (finding) (foreread_findings{instance=~\"$instance\"})",
                    "{{finding}}",
                )],
            },
        ],
    ),
    (
        "Hosts",
        &[
            Panel {
                title: "Read-ahead",
                help: "Each storage with its value and origin",
                kind: Kind::Table,
                unit: "bytes",
                width: 12,
                queries: &[("foreread_read_ahead_bytes{instance=~\"$instance\"}", "")],
            },
            Panel {
                title: "Violations",
                help: "Rules of the policy that a storage violates",
                kind: Kind::Table,
                unit: "short",
                width: 12,
                queries: &[("foreread_policy_violation{instance=~\"$instance\"}", "")],
            },
            Panel {
                title: "Smallest and largest read-ahead",
                help: "A step shows when a value changed",
                kind: Kind::Lines,
                unit: "bytes",
                width: 12,
                queries: &[
                    (
                        "foreread_read_ahead_min_bytes{instance=~\"$instance\"}",
                        "{{instance}} smallest",
                    ),
                    (
                        "foreread_read_ahead_max_bytes{instance=~\"$instance\"}",
                        "{{instance}} largest",
                    ),
                ],
            },
            Panel {
                title: "Open files with an older window",
                help: "Files keep the window from the time they were opened",
                kind: Kind::Lines,
                unit: "short",
                width: 12,
                queries: &[(
                    "foreread_open_files_outdated{instance=~\"$instance\"}",
                    "{{instance}}",
                )],
            },
        ],
    ),
    (
        "foreread auto",
        &[
            Panel {
                title: "Gain of auto",
                help: "Throughput with auto ÷ without, of auto --ab-test: median and 95 % CI",
                kind: Kind::Lines,
                unit: "short",
                width: 8,
                queries: &[(
                    "foreread_effect_ratio{instance=~\"$instance\"}",
                    "{{instance}} {{bound}}",
                )],
            },
            Panel {
                title: "Predicted and measured gain",
                help: "Typical gain of actions on each device: predicted before, measured after",
                kind: Kind::Lines,
                unit: "short",
                width: 8,
                queries: &[
                    (
                        "foreread_auto_predicted_gain_ratio{instance=~\"$instance\"}",
                        "{{instance}} {{bdi}} predicted",
                    ),
                    (
                        "foreread_auto_measured_gain_ratio{instance=~\"$instance\"}",
                        "{{instance}} {{bdi}} measured",
                    ),
                ],
            },
            Panel {
                title: "Prefetched by auto",
                help: "Bytes per second in addition to the kernel's read-ahead",
                kind: Kind::Lines,
                unit: "Bps",
                width: 8,
                queries: &[(
                    "sum by (instance) \
                     (rate(foreread_prefetched_bytes_total{instance=~\"$instance\"}\
                     [$__rate_interval]))",
                    "{{instance}}",
                )],
            },
            Panel {
                title: "Actions of auto",
                help: "Windows set, misses that were continued, and what could not be done",
                kind: Kind::Lines,
                unit: "ops",
                width: 8,
                queries: &[
                    (
                        "sum(rate(foreread_windows_set_total{instance=~\"$instance\"}\
                         [$__rate_interval]))",
                        "windows set",
                    ),
                    (
                        "sum(rate(foreread_miss_prefetches_total{instance=~\"$instance\"}\
                         [$__rate_interval]))",
                        "miss prefetches",
                    ),
                    (
                        "sum(rate(foreread_actions_failed_total{instance=~\"$instance\"}\
                         [$__rate_interval]))",
                        "failed",
                    ),
                    (
                        "sum(rate(foreread_lost_events_total{instance=~\"$instance\"}\
                         [$__rate_interval]))",
                        "events lost",
                    ),
                ],
            },
            Panel {
                title: "Open files followed",
                help: "By device, as backing device info",
                kind: Kind::Lines,
                unit: "short",
                width: 8,
                queries: &[(
                    "foreread_open_files{instance=~\"$instance\"}",
                    "{{instance}} {{bdi}}",
                )],
            },
            Panel {
                title: "Device latency",
                help: "The shortest mean time of a read that auto has seen",
                kind: Kind::Lines,
                unit: "s",
                width: 8,
                queries: &[(
                    "foreread_device_latency_seconds{instance=~\"$instance\"}",
                    "{{instance}} {{bdi}}",
                )],
            },
            Panel {
                title: "Device rate",
                help: "The highest rate that auto has seen",
                kind: Kind::Lines,
                unit: "Bps",
                width: 8,
                queries: &[(
                    "foreread_device_rate_bytes_per_second{instance=~\"$instance\"}",
                    "{{instance}} {{bdi}}",
                )],
            },
        ],
    ),
];

/// Writes the dashboard.
pub fn write(root: &Path) -> Result<bool> {
    let path = root.join(FILE);
    fs::write(&path, text()?).with_context(|| path.display().to_string())?;
    println!("wrote {FILE}");
    Ok(true)
}

/// The dashboard as JSON, in the schema of Grafana 9 and later.
pub fn text() -> Result<String> {
    let data = json!({"type": "prometheus", "uid": "${datasource}"});
    let mut panels = Vec::new();
    let mut y = 0;
    for (heading, row) in ROWS {
        let id = panels.len() + 1;
        panels.push(json!({
            "id": id, "type": "row", "title": heading, "collapsed": false, "panels": [],
            "gridPos": {"x": 0, "y": y, "w": GRID_WIDTH_COLUMNS, "h": 1},
        }));
        y += 1;
        let (mut x, mut tallest) = (0, 0);
        for panel in *row {
            if x + panel.width > GRID_WIDTH_COLUMNS {
                (x, y, tallest) = (0, y + tallest, 0);
            }
            let height = if panel.kind == Kind::Stat { 4 } else { 8 };
            panels.push(panel.json(panels.len() + 1, [x, y, panel.width, height], &data));
            x += panel.width;
            tallest = tallest.max(height);
        }
        y += tallest;
    }
    let instances = "label_values(foreread_host_info, instance)";
    let dashboard = json!({
        "title": "foreread",
        "uid": "foreread",
        "tags": ["foreread", "storage"],
        "description": "Read-ahead of hosts: settings, origins, drift, and what auto does",
        "schemaVersion": 38,
        "editable": true,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [
            {"name": "datasource", "label": "Prometheus", "type": "datasource",
             "query": "prometheus"},
            {"name": "instance", "label": "Host", "type": "query", "datasource": data,
             "query": {"query": instances, "refId": "instance"}, "definition": instances,
             "multi": true, "includeAll": true, "allValue": ".*", "refresh": 2, "sort": 1,
             "current": {"text": "All", "value": "$__all"}},
        ]},
        "panels": panels,
    });
    Ok(serde_json::to_string_pretty(&dashboard)? + "\n")
}

impl Panel {
    fn json(&self, id: usize, [x, y, w, h]: [u64; 4], data: &Value) -> Value {
        let instant = self.kind != Kind::Lines;
        let targets = self.queries.iter().zip('A'..).map(|((expr, legend), id)| {
            json!({
                "refId": id, "expr": expr, "legendFormat": legend, "datasource": data,
                "instant": instant, "range": !instant,
                "format": if self.kind == Kind::Table { "table" } else { "time_series" },
            })
        });
        let targets: Vec<Value> = targets.collect();
        let mut panel = json!({
            "id": id,
            "title": self.title,
            "description": self.help,
            "type": self.kind.word(),
            "datasource": data,
            "gridPos": {"x": x, "y": y, "w": w, "h": h},
            "targets": targets,
            "fieldConfig": {"defaults": {"unit": self.unit, "min": 0}, "overrides": []},
            "options": self.kind.options(),
        });
        if self.kind == Kind::Table {
            // Labels that say nothing about read-ahead.
            let hidden = json!({"Time": true, "__name__": true, "job": true});
            panel["transformations"] =
                json!([{"id": "organize", "options": {"excludeByName": hidden}}]);
        }
        panel
    }
}

impl Kind {
    /// Grafana's name of the kind of panel.
    fn word(self) -> &'static str {
        match self {
            Self::Stat => "stat",
            Self::Bars => "bargauge",
            Self::Lines => "timeseries",
            Self::Table => "table",
        }
    }

    fn options(self) -> Value {
        let last = json!({"calcs": ["lastNotNull"], "fields": "", "values": false});
        match self {
            Self::Stat => json!({"reduceOptions": last, "colorMode": "value"}),
            Self::Bars => json!({"reduceOptions": last, "orientation": "horizontal",
                                 "displayMode": "basic", "valueMode": "color"}),
            Self::Lines => json!({"legend": {"displayMode": "list", "placement": "bottom"},
                                  "tooltip": {"mode": "multi"}}),
            Self::Table => json!({"showHeader": true, "cellHeight": "sm"}),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_what_the_code_makes() {
        let root = crate::repository().unwrap();
        let kept = fs::read_to_string(root.join(FILE)).unwrap();
        let made = text().unwrap();
        assert!(kept == made, "{FILE} is out of date: cargo run -p xtask -- dashboard");
    }

    #[test]
    fn panels_do_not_overlap() {
        let made: Value = serde_json::from_str(&text().unwrap()).unwrap();
        let mut cells = std::collections::BTreeSet::new();
        for panel in made["panels"].as_array().unwrap() {
            let at = |key: &str| panel["gridPos"][key].as_u64().unwrap();
            assert!(at("x") + at("w") <= GRID_WIDTH_COLUMNS, "{panel}");
            for cell in (at("x")..at("x") + at("w")).flat_map(|x| {
                let rows = at("y")..at("y") + at("h");
                rows.map(move |y| (x, y))
            }) {
                assert!(cells.insert(cell), "{panel} overlaps at {cell:?}");
            }
        }
    }
}
