//! The list of probes for a device.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use units::Bytes;

use super::{Probe, Purpose};

/// The size of a page: the smallest direct read that every device accepts.
const PAGE_BYTES: u64 = 4096;
/// Size of a stream's requests in bytes, number of them in flight, and their total number.
const STREAM_REQUEST: u64 = 1 << 20;
const STREAM_DEPTH: usize = 4;
const STREAM_REQUESTS: u64 = 96;
const RANDOM_READS: u64 = 160;
/// Number of reads at each possible chunk size, and the byte range that they cover.
const CHUNK_READS: u64 = 300;
const CHUNK_SPAN: u64 = 4 << 30;
/// Number of random reads for each request in flight.
const READS_PER_DEPTH: u64 = 40;
/// Usual chunk sizes of arrays, in KiB.
pub(super) const CHUNKS_KIB: [u32; 6] = [32, 64, 128, 256, 512, 1024];
/// Number of interleaved streams, requests of each, and queue depths.
const STREAM_COUNT: u64 = 4;
const STREAM_TURNS: u64 = 48;
const INTERLEAVED_DEPTHS: [u32; 2] = [1, 4];
const DEPTHS: [u32; 5] = [1, 2, 4, 8, 32];
/// Distances in per mille of the device.
const DISTANCES: [u32; 4] = [10, 100, 333, 1000];
/// Offsets of streams in per mille of the device.
pub(super) const PLACES: [u32; 3] = [0, 500, 1000];

/// Returns the probes for a device of `capacity`; `seed` determines the random offsets.
pub fn probes(capacity: Bytes, seed: u64) -> Vec<Probe> {
    let mut plan = Plan { capacity: capacity.get(), rng: Pcg64Mcg::seed_from_u64(seed) };
    let mut probes: Vec<Probe> = PLACES.iter().map(|&place| plan.stream(place)).collect();
    probes.push(plan.small_stream());
    probes.extend(INTERLEAVED_DEPTHS.iter().map(|&depth| plan.interleaved(depth)));
    probes.push(plan.near());
    probes.extend(DISTANCES.iter().map(|&distance| plan.distance(distance)));
    probes.extend(DEPTHS.iter().map(|&depth| plan.queue(depth)));
    for chunk in CHUNKS_KIB {
        probes.extend(plan.chunk(chunk));
    }
    probes
}

struct Plan {
    capacity: u64,
    rng: Pcg64Mcg,
}

impl Plan {
    /// Returns the offset of a random page below `end`.
    fn page(&mut self, end: u64) -> u64 {
        self.rng.next_u64() % (end / PAGE_BYTES).max(1) * PAGE_BYTES
    }

    fn probe(purpose: Purpose, depth: usize, length: u64, offsets: Vec<u64>) -> Probe {
        let offsets = offsets.into_iter().map(Bytes::new).collect();
        Probe { purpose, depth, length: Bytes::new(length), offsets }
    }

    fn stream(&self, place: u32) -> Probe {
        let requests = STREAM_REQUESTS.min(self.capacity / 4 / STREAM_REQUEST).max(1);
        let room = self.capacity.saturating_sub(requests * STREAM_REQUEST);
        let start = room / 1000 * u64::from(place) / PAGE_BYTES * PAGE_BYTES;
        let offsets = (0..requests).map(|at| start + at * STREAM_REQUEST).collect();
        Self::probe(Purpose::Stream(place), STREAM_DEPTH, STREAM_REQUEST, offsets)
    }

    /// Reads one page after another, which a drive's read-ahead has cached: this measures the time
    /// of a command. The offset differs from those of other streams.
    fn small_stream(&self) -> Probe {
        let length = PAGE_BYTES;
        let start = self.capacity / 8 / PAGE_BYTES * PAGE_BYTES;
        let offsets = (0..512).map(|at| start + at * length).collect();
        Self::probe(Purpose::SmallStream, 1, length, offsets)
    }

    /// Interleaves several streams: shows whether a drive reads ahead for each of them while others
    /// wait. The offsets differ from those of other streams.
    fn interleaved(&self, depth: u32) -> Probe {
        let length = 32 << 10;
        let start = |stream| self.capacity / 16 * (5 + 2 * stream + u64::from(depth > 1));
        let offsets = (0..STREAM_COUNT * STREAM_TURNS)
            .map(|at| {
                start(at % STREAM_COUNT) / PAGE_BYTES * PAGE_BYTES + at / STREAM_COUNT * length
            })
            .collect();
        Self::probe(Purpose::Interleaved(depth), depth as usize, length, offsets)
    }

    fn near(&mut self) -> Probe {
        let span = (self.capacity / 1000).max(16 * PAGE_BYTES);
        let start = self.capacity / 4 / PAGE_BYTES * PAGE_BYTES;
        let offsets = (0..RANDOM_READS).map(|_| start + self.page(span)).collect();
        Self::probe(Purpose::Near, 1, PAGE_BYTES, offsets)
    }

    /// Alternates between random pages at both ends of the distance.
    fn distance(&mut self, distance: u32) -> Probe {
        let span = self.capacity / 1000 * u64::from(distance);
        let slack = (self.capacity / 500).max(16 * PAGE_BYTES);
        let low = (self.capacity.saturating_sub(span) / 2) / PAGE_BYTES * PAGE_BYTES;
        let high = (low + span).saturating_sub(slack) / PAGE_BYTES * PAGE_BYTES;
        let offsets = (0..RANDOM_READS)
            .map(|at| if at % 2 == 0 { low } else { high } + self.page(slack - PAGE_BYTES))
            .collect();
        Self::probe(Purpose::Distance(distance), 1, PAGE_BYTES, offsets)
    }

    fn queue(&mut self, depth: u32) -> Probe {
        let reads = RANDOM_READS.max(READS_PER_DEPTH * u64::from(depth));
        let capacity = self.capacity;
        let offsets = (0..reads).map(|_| self.page(capacity)).collect();
        Self::probe(Purpose::Queue(depth), depth as usize, PAGE_BYTES, offsets)
    }

    /// Reads two pages across a chunk boundary, and two pages before another one (a controller may
    /// cache the same one); near one place, so that the arm hardly moves.
    fn chunk(&mut self, kib: u32) -> [Probe; 2] {
        let chunk = u64::from(kib) << 10;
        let span = (self.capacity / 2).min(CHUNK_SPAN.max(self.capacity / 1000));
        let multiples = (span / chunk).saturating_sub(1).max(1);
        let first = self.capacity / 4 / (2 * chunk) * (2 * chunk);
        let mut ends = |back: u64| -> Vec<u64> {
            // Odd multiples only: an even multiple is also one of the next larger chunk size.
            (0..CHUNK_READS)
                .map(|_| first + ((self.rng.next_u64() % multiples) | 1) * chunk - back)
                .collect()
        };
        let (across, beside) = (ends(PAGE_BYTES), ends(4 * PAGE_BYTES));
        [
            Self::probe(Purpose::Across(kib), 1, 2 * PAGE_BYTES, across),
            Self::probe(Purpose::WithinChunk(kib), 1, 2 * PAGE_BYTES, beside),
        ]
    }
}
