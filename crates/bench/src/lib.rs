//! Real workloads: cold cache, reader engines, latency histograms, device counters.
