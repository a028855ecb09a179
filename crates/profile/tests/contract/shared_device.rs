//! Threads that wait at the same time, for one device or for two.

use foreread_profile::{ModelChoice, ProfileRecording, StackTrace, analyse, others_line, places};
use host::DevNo;
use units::Nanos;

use crate::{Builder, DEVICE, MISS, WAIT, scattered, volume};

/// Records two concurrent threads: one reads in order with `RANDOM` advice, the other at random in
/// a file of `device`. Each wait takes `wait`.
fn two_threads(device: DevNo, wait: Nanos) -> ProfileRecording {
    let mut recording = ProfileRecording::default();
    for tid in [1, 2_u32] {
        let mut builder = Builder::new();
        for (page, place) in (0..200).zip(scattered(200)) {
            let offset = if tid == 1 { page * 4096 } else { place };
            let access = builder.access(offset, 4096, MISS);
            access.is_random = tid == 1;
            access.blocked = wait;
            access.end = access.start + wait;
            (access.tid, access.inode, access.file) = (tid, tid - 1, u64::from(tid));
            builder.now = access.end;
            let last = builder.recording.waits.last_mut().unwrap();
            (last.tid, last.inode, last.file) = (tid, Some(tid - 1), u64::from(tid));
            (last.end, last.blocked) = (builder.now, wait);
            let request = builder.recording.requests.last_mut().unwrap();
            request.device = if tid == 1 { DEVICE } else { device };
            (request.end, request.service) = (builder.now, wait);
        }
        builder.recording.files[0].id.inode = u64::from(tid);
        builder.recording.files[0].id.device = if tid == 1 { DEVICE } else { device };
        recording.wall = builder.now;
        recording.files.append(&mut builder.recording.files);
        recording.accesses.append(&mut builder.recording.accesses);
        recording.waits.append(&mut builder.recording.waits);
        recording.requests.append(&mut builder.recording.requests);
    }
    recording.stacks.push(StackTrace::default());
    recording.taken = 1000;
    recording
}

#[test]
fn who_shares_a_device_bounds_what_a_fix_saves() {
    let gain = |recording: &ProfileRecording, model: &ModelChoice| {
        let analysis = analyse(recording, model, &[]);
        let first = &analysis.diagnoses[0];
        assert_eq!(first.rule.name, "needless-random");
        first.gain.saved().as_secs_f64() / recording.wall.as_secs_f64()
    };
    // With one request at a time, the other thread needs the device for half of the run.
    let ModelChoice::Named(mut model) = volume() else { panic!("no model") };
    model.spec.set("concurrency", "1").unwrap();
    let shared = two_threads(DEVICE, WAIT + WAIT);
    let saved = gain(&shared, &ModelChoice::Named(model));
    assert!((0.4..0.6).contains(&saved), "{saved}");
    // With a device for each, neither thread waits for the other.
    let apart = two_threads(DevNo { major: 7, minor: 2 }, WAIT);
    let saved = gain(&apart, &volume());
    assert!((0.9..1.0).contains(&saved), "{saved}");
}

#[test]
fn open_files_with_one_diagnosis_at_one_line_are_one_place_with_one_gain() {
    let mut builder = Builder::new();
    for file in [7, 8, 9, 10] {
        for page in 0..100 {
            let offset = (file - 7) * (1 << 20) + page * 4096;
            let access = builder.access(offset, 4096, MISS);
            (access.file, access.is_random) = (file, true);
            builder.recording.waits.last_mut().unwrap().file = file;
        }
    }
    builder.recording.wall = builder.now;
    let analysis = analyse(&builder.recording, &volume(), &[]);
    let places = places(&builder.recording, &analysis);
    let [(first, others)] = &places[..] else { panic!("{} places", places.len()) };
    assert_eq!((first.rule.name, others.len()), ("needless-random", 3));
    let line = others_line(first, others).unwrap();
    let (also, saved) = line.split_once("; ").unwrap();
    assert_eq!(also, "3 more open files at this line, 1.50 s together");
    // Reading the file takes 2.0 s without read-ahead and 0.1 s with it.
    let saved = saved.strip_prefix("the fix saves ").unwrap();
    let (seconds, _) = saved.split_once(" s for all 4 open files").unwrap();
    assert!((1.8..2.0).contains(&seconds.parse::<f64>().unwrap()), "{saved}");
    assert_eq!(others_line(first, &[]), None);
}
