//! The summary of a trace.

use serde_json::{Value as Json, json};
use trace::{TraceSummary, TraceVerification};

use crate::SCHEMA_VERSION;

/// Returns the result of a trace's verification (docs/json.md).
pub fn trace_verification_json(found: &TraceVerification) -> Json {
    let damages = found.damages.iter().map(|damage| {
        json!({
            "block": damage.block, "offset_bytes": damage.offset, "problem": damage.problem,
            "requests_before": damage.records_before,
        })
    });
    json!({
        "schema_version": SCHEMA_VERSION,
        "blocks": found.blocks,
        "requests": found.records,
        "damages": damages.collect::<Vec<_>>(),
    })
}

/// Returns the summary of a trace in this format (docs/json.md).
pub fn trace_json(format: &str, summary: &TraceSummary) -> Json {
    let sizes = summary
        .sizes
        .iter()
        .map(|size| json!({ "size_bytes": size.size.get(), "requests": size.requests }));
    let files = summary.hot_files.iter().map(|file| {
        json!({
            "name": file.name, "requests": file.requests, "bytes": file.bytes.get(),
            "size_bytes": file.size.get(),
        })
    });
    json!({
        "schema_version": SCHEMA_VERSION,
        "format": format,
        "timed": summary.timed,
        "span_seconds": summary.span.as_secs_f64(),
        "reads": summary.reads,
        "read_bytes": summary.read_bytes.get(),
        "writes": summary.writes,
        "write_bytes": summary.write_bytes.get(),
        "faults": summary.faults,
        "advice": summary.advice,
        "processes": summary.processes,
        "threads": summary.threads,
        "files": summary.files,
        "open_files": summary.open_files,
        "footprint_bytes": summary.footprint.get(),
        "next_page_share": summary.next_page_share,
        "sequential_share": summary.sequential_share,
        "stream_share": summary.stream_share,
        "streams": summary.streams,
        "streams_at_once": summary.streams_at_once,
        "sizes": sizes.collect::<Vec<_>>(),
        "size_p50_bytes": summary.size_p50.get(),
        "size_max_bytes": summary.size_max.get(),
        "hot_files": files.collect::<Vec<_>>(),
    })
}
