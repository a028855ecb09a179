//! Runs trials on the real kernel: effects of the window, and disturbances.

#![allow(clippy::unwrap_used)] // A test may panic.
#![allow(clippy::print_stdout)] // Skipped tests must be visible.

mod support;

use std::fs;
use std::io::Write;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use foreread_bench::{
    BenchError, CacheStart, Cancel, Dataset, Disturbance, LayOutOptions, Sample, TrialOptions,
    run_trial,
};
use host::Root;
use support::{Disk, disk, millis, run, whole};
use sys::mapping::FileMapping;
use units::{Bytes, Nanos};
use workload::{AccessMethod, Layout, Pattern, Sharing, Workload};

/// Returns a workload of the suite; streams read 64 KiB at once, which the counts below assume.
fn named(name: &str) -> Workload {
    let workload = Workload::named(name).unwrap();
    let random = name.starts_with("rand");
    if random { workload } else { Workload { block: Bytes::from_kib(64), ..workload } }
}

fn requests(sample: &Sample) -> u64 {
    sample.device.unwrap().requests
}

/// Returns disturbances that concern the data, not those that a busy machine causes.
fn about_data(sample: &Sample) -> Vec<&Disturbance> {
    let about_data = |it: &&Disturbance| {
        matches!(it, Disturbance::WarmStart { .. } | Disturbance::WarmData { .. })
    };
    sample.disturbances.iter().filter(about_data).collect()
}

#[test]
fn host_a_stream_s_requests_follow_the_window() {
    let name = "host_a_stream_s_requests_follow_the_window";
    let Some(disk) = disk(name, "ext4", 600) else { return };
    let workload = named("seq-1");
    let dataset = disk.lay_out(std::slice::from_ref(&workload), Bytes::from_mib(256));
    let largest = disk.max_request_kib();
    // The kernel attributes CPU time by ticks: a short trial may have none in the kernel.
    let mut system = Nanos::ZERO;
    // One request for each window, but none smaller than a read or larger than the device supports;
    // the ramp adds a few.
    for read_ahead in [16u64, 128, 256, 1024] {
        let expected = (256 << 10) / read_ahead.max(64).min(largest);
        disk.set_read_ahead(read_ahead);
        let sample = disk.trial(&dataset, &workload, &whole());
        println!("{read_ahead} KiB: {} requests", requests(&sample));
        assert!(requests(&sample).abs_diff(expected) <= 8, "{}", requests(&sample));
        assert_eq!(sample.useful(), Bytes::from_mib(256));
        assert_eq!((sample.requests(), sample.stream.latency.count()), (4096, 4096));
        assert_eq!(sample.random.latency.count(), 0);
        let amplification = sample.amplification().unwrap();
        assert!((amplification - 1.0).abs() < 0.001, "{amplification}");
        assert!(sample.exhausted && sample.cold.is_cold());
        assert!(about_data(&sample).is_empty(), "{:?}", sample.disturbances);
        assert!(sample.cpu.system + sample.cpu.user > Nanos::ZERO);
        assert!(sample.throughput().as_mib() > 0.0);
        system += sample.cpu.system;
    }
    assert!(system > Nanos::ZERO);
}

#[test]
fn host_random_preads_read_what_is_asked() {
    let name = "host_random_preads_read_what_is_asked";
    let Some(disk) = disk(name, "ext4", 700) else { return };
    // Stops early: once most of a file is cached, the kernel takes the rest for a stream.
    let workload = Workload { think: Nanos::from_millis(2), ..named("rand-pread") };
    let dataset = disk.lay_out(std::slice::from_ref(&workload), Bytes::from_mib(64));
    for read_ahead in [128, 8192] {
        disk.set_read_ahead(read_ahead);
        let sample = disk.trial(&dataset, &workload, &millis(300));
        let amplification = sample.amplification().unwrap();
        println!("{read_ahead} KiB: {} reads, ×{amplification:.3}", sample.requests());
        // Metadata of a freshly mounted file system may add to this.
        assert!((1.0..1.02).contains(&amplification), "{amplification}");
        assert!(requests(&sample).abs_diff(sample.requests()) < 20, "{}", requests(&sample));
        assert_eq!(sample.stream.latency.count(), 0);
    }
}

#[test]
fn host_random_faults_amplify_with_the_window() {
    let name = "host_random_faults_amplify_with_the_window";
    let Some(disk) = disk(name, "xfs", 1500) else { return };
    // A few hundred faults in 1 GiB: few enough that their windows hardly overlap.
    let workload = Workload {
        access: AccessMethod::Mmap,
        think: Nanos::from_millis(1),
        ..Workload::new("few-faults", Pattern::Uniform, Bytes::from_kib(4))
    };
    let dataset = disk.lay_out(std::slice::from_ref(&workload), Bytes::from_gib(1));
    let amplification = |read_ahead| {
        disk.set_read_ahead(read_ahead);
        let sample = disk.trial(&dataset, &workload, &millis(250));
        assert!(about_data(&sample).is_empty(), "{:?}", sample.disturbances);
        assert!(!sample.exhausted && sample.requests() > 20);
        let amplification = sample.amplification().unwrap();
        println!("{read_ahead} KiB: {} faults, ×{amplification:.1}", sample.requests());
        amplification
    };
    assert!((1.0..1.1).contains(&amplification(4)));
    assert!((3.0..4.5).contains(&amplification(16)));
    assert!((25.0..33.0).contains(&amplification(128)));
    assert!(amplification(1024) > 100.0);
}

#[test]
fn host_strided_faults_amplify_exactly() {
    let name = "host_strided_faults_amplify_exactly";
    let Some(disk) = disk(name, "ext4", 400) else { return };
    let pattern = Pattern::Stride { step: Bytes::from_mib(1) };
    let workload = Workload {
        access: AccessMethod::Mmap,
        ..Workload::new("steps", pattern, Bytes::from_kib(4))
    };
    let dataset = disk.lay_out(std::slice::from_ref(&workload), Bytes::from_mib(256));
    for read_ahead in [16u64, 64, 128] {
        disk.set_read_ahead(read_ahead);
        let sample = disk.trial(&dataset, &workload, &whole());
        let amplification = sample.amplification().unwrap();
        // Read-around reads the window around each page.
        let expected = read_ahead as f64 / 4.0;
        assert!((amplification / expected - 1.0).abs() < 0.03, "{read_ahead}: {amplification}");
    }
}

#[test]
fn host_eight_readers_on_parts_of_a_device() {
    let name = "host_eight_readers_on_parts_of_a_device";
    let Some(disk) = disk(name, "none", 64) else { return };
    disk.set_read_ahead(256);
    let dataset = Dataset::existing(disk.device()).unwrap();
    assert_eq!(dataset.directory(), None);
    for access in [AccessMethod::Read, AccessMethod::Mmap] {
        let workload = Workload { access, ..named("seq-8") };
        let sample = disk.trial(&dataset, &workload, &whole());
        assert_eq!(sample.readers.len(), 8);
        assert!(sample.exhausted && sample.useful() <= Bytes::from_mib(64));
        assert!(sample.readers.iter().any(|reader| reader.useful == Bytes::from_mib(8)));
        assert!(about_data(&sample).is_empty(), "{:?}", sample.disturbances);
        assert!(sample.device.unwrap().bytes >= sample.useful());
    }
    dataset.remove().unwrap();
    assert!(disk.device().exists());
}

#[test]
fn host_readers_may_share_files() {
    let name = "host_readers_may_share_files";
    let Some(disk) = disk(name, "ext4", 200) else { return };
    for access in [AccessMethod::Read, AccessMethod::Mmap] {
        for sharing in [Sharing::SharedFile, Sharing::SharedOpenFile] {
            let workload = Workload { access, sharing, readers: 4, ..named("seq-1") };
            let dataset = disk.lay_out(std::slice::from_ref(&workload), Bytes::from_mib(32));
            let sample = disk.trial(&dataset, &workload, &whole());
            assert!(sample.useful() <= Bytes::from_mib(32));
            assert!(sample.readers.iter().any(|reader| reader.useful == Bytes::from_mib(8)));
            assert!(about_data(&sample).is_empty(), "{:?}", sample.disturbances);
        }
    }
}

#[test]
fn host_a_warm_cache_is_noticed() {
    let name = "host_a_warm_cache_is_noticed";
    let Some(disk) = disk(name, "ext4", 200) else { return };
    let workload = named("seq-1");
    let dataset = disk.lay_out(std::slice::from_ref(&workload), Bytes::from_mib(32));
    let path = dataset.directory().unwrap().join("contiguous-33554432-00000.data");
    {
        // Pages that a process has mapped and touched cannot be evicted.
        let file = fs::File::open(path).unwrap();
        let half = Bytes::from_mib(16);
        let mapping = FileMapping::new(file.as_fd(), Bytes::ZERO, half).unwrap();
        mapping.copy_to(0, &mut vec![0; half.get() as usize]).unwrap();
        let sample = disk.trial(&dataset, &workload, &whole());
        assert!(sample.cold.resident >= half && !sample.cold.is_cold());
        let [Disturbance::WarmStart { resident }, Disturbance::WarmData { device, useful }] =
            about_data(&sample)[..]
        else {
            panic!("{:?}", sample.disturbances);
        };
        let whole = Bytes::from_mib(32);
        assert!(*resident >= half && *useful == whole, "{resident} {useful}");
        // All that was not cached is read, and whatever metadata the file system had lost.
        let missing = whole - *resident;
        let all = missing..=missing + Bytes::from_kib(64);
        assert!(all.contains(device), "{device} of {missing}");
    }
    // A warm cache is not a disturbance with `AsFound`.
    let options = TrialOptions { start: CacheStart::AsFound, ..whole() };
    let sample = disk.trial(&dataset, &workload, &options);
    assert_eq!(requests(&sample), 0);
    assert_eq!(sample.cold.resident, Bytes::from_mib(32));
    assert!(about_data(&sample).is_empty(), "{:?}", sample.disturbances);
    // Once no process maps the file, it is cold again.
    assert!(about_data(&disk.trial(&dataset, &workload, &whole())).is_empty());
}

/// Runs a trial of 1.5 s, and calls `meddle` after 400 ms, when the trial has certainly started.
fn trial_with(
    disk: &Disk,
    dataset: &Dataset,
    workload: &Workload,
    meddle: impl FnOnce() + Send,
) -> Result<Sample, BenchError> {
    trial_of(&millis(1500), disk, dataset, workload, meddle)
}

fn trial_of(
    options: &TrialOptions,
    disk: &Disk,
    dataset: &Dataset,
    workload: &Workload,
    meddle: impl FnOnce() + Send,
) -> Result<Sample, BenchError> {
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(400));
            meddle();
        });
        run_trial(&Root::system(), &disk.storage(), dataset, workload, options)
    })
}

fn slow(access: AccessMethod) -> Workload {
    Workload { think: Nanos::from_millis(3), access, ..named("seq-1") }
}

#[test]
fn host_a_foreign_cache_drop_is_noticed() {
    let name = "host_a_foreign_cache_drop_is_noticed";
    let Some(disk) = disk(name, "ext4", 200) else { return };
    let workload = Workload { think: Nanos::from_millis(10), ..named("seq-1") };
    let dataset = disk.lay_out(std::slice::from_ref(&workload), Bytes::from_mib(64));
    let drop_caches = || fs::write("/proc/sys/vm/drop_caches", "1").unwrap();
    // The kernel counts a drop after it has completed, which takes seconds on a busy machine.
    let sample = trial_of(&millis(6000), &disk, &dataset, &workload, drop_caches).unwrap();
    let dropped =
        |it: &Disturbance| matches!(it, Disturbance::CacheDropped { times } if *times > 0);
    assert!(sample.disturbances.iter().any(dropped), "{:?}", sample.disturbances);
    // foreread's own drop is not a disturbance.
    let options = TrialOptions { drop_caches: true, ..millis(100) };
    let sample = disk.trial(&dataset, &workload, &options);
    assert!(sample.cold.dropped_caches);
    assert!(!sample.disturbances.iter().any(dropped), "{:?}", sample.disturbances);
}

#[test]
fn host_foreign_traffic_is_noticed() {
    let name = "host_foreign_traffic_is_noticed";
    let Some(disk) = disk(name, "ext4", 300) else { return };
    let workload = slow(AccessMethod::Read);
    let dataset = disk.lay_out(std::slice::from_ref(&workload), Bytes::from_mib(64));
    let other = disk.mount_point().join("other");
    let traffic = |sample: &Sample| {
        sample.disturbances.iter().find_map(|it| match it {
            Disturbance::ForeignTraffic { read, written, .. } => Some((*read, *written)),
            _ => None,
        })
    };
    let quiet = trial_with(&disk, &dataset, &workload, || {}).unwrap();
    assert_eq!(traffic(&quiet), None);
    let own = quiet.device.unwrap();
    let accounted = own.own_bytes.expect("this kernel accounts for I/O");
    assert!(own.bytes.get().abs_diff(accounted.get()) <= 64 << 10, "{own:?}");

    let write = || {
        let mut file = fs::File::create(&other).unwrap();
        file.write_all(&vec![5; 32 << 20]).unwrap();
        file.sync_all().unwrap();
    };
    let sample = trial_with(&disk, &dataset, &workload, write).unwrap();
    let (_, written) = traffic(&sample).unwrap();
    assert!(written >= Bytes::from_mib(32), "{written}");

    let evict = rustix::fs::Advice::DontNeed;
    rustix::fs::fadvise(fs::File::open(&other).unwrap(), 0, None, evict).unwrap();
    let read = || assert_eq!(fs::read(&other).unwrap().len(), 32 << 20);
    let sample = trial_with(&disk, &dataset, &workload, read).unwrap();
    let (read, _) = traffic(&sample).unwrap();
    assert!(read.get().abs_diff(32 << 20) < 1 << 20, "{read}");
}

#[test]
fn host_a_file_that_shrinks_is_an_error() {
    let name = "host_a_file_that_shrinks_is_an_error";
    let Some(disk) = disk(name, "ext4", 200) else { return };
    for access in [AccessMethod::Read, AccessMethod::Mmap] {
        let path = disk.mount_point().join("shrinking");
        fs::write(&path, vec![3; 64 << 20]).unwrap();
        let dataset = Dataset::existing(&path).unwrap();
        let shrink = || {
            let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(4096).unwrap();
        };
        let problem = trial_with(&disk, &dataset, &slow(access), shrink).unwrap_err();
        let BenchError::Shrank { path: message, .. } = &problem else { panic!("{problem}") };
        assert_eq!(*message, path);
    }
}

#[test]
fn host_a_device_that_fails_is_an_error() {
    let name = "host_a_device_that_fails_is_an_error";
    for access in [AccessMethod::Read, AccessMethod::Mmap] {
        let Some(disk) = disk(name, "none", 64) else { return };
        let dataset = Dataset::existing(disk.device()).unwrap();
        disk.set_read_ahead(64);
        // A loop device returns I/O errors once its file is truncated.
        let image = disk.image();
        let fail = || {
            let file = fs::OpenOptions::new().write(true).open(&image).unwrap();
            file.set_len(0).unwrap();
        };
        let problem = trial_with(&disk, &dataset, &slow(access), fail).unwrap_err();
        let BenchError::Read { path, source, .. } = &problem else { panic!("{problem}") };
        assert_eq!((path.as_path(), source.raw_os_error()), (disk.device(), Some(5)));
    }
}

#[test]
fn host_full_and_read_only_disks_are_told() {
    let name = "host_full_and_read_only_disks_are_told";
    let Some(disk) = disk(name, "ext4", 64) else { return };
    let lay_out = |file_size| {
        let options = LayOutOptions { file_size, seed: 1, cancel: Cancel::new() };
        Dataset::lay_out(&disk.mount_point(), &[named("seq-8")], &options, &mut |_| {})
    };
    let problem = lay_out(Bytes::from_mib(16)).unwrap_err();
    let BenchError::NoSpace { needed, available, .. } = problem else { panic!("{problem}") };
    assert!(needed > Bytes::from_mib(128) && available < Bytes::from_mib(64));
    assert!(!disk.mount_point().join(".foreread-data").exists());
    disk.remount("ro");
    let problem = lay_out(Bytes::from_mib(1)).unwrap_err();
    assert!(matches!(problem, BenchError::ReadOnly { .. }), "{problem}");
    disk.remount("rw");
    lay_out(Bytes::from_mib(1)).unwrap().remove().unwrap();
}

#[test]
fn host_a_disk_without_an_inode_is_told() {
    let name = "host_a_disk_without_an_inode_is_told";
    let Some(disk) = disk(name, "ext4", 64) else { return };
    let point = disk.mount_point();
    let refused = || {
        let options =
            LayOutOptions { file_size: Bytes::from_mib(1), seed: 1, cancel: Cancel::new() };
        let problem = Dataset::lay_out(&point, &[named("seq-8")], &options, &mut |_| {});
        let problem = problem.unwrap_err();
        let BenchError::NoSpace { source, .. } = &problem else { panic!("{problem}") };
        assert!(!point.join(".foreread-data").exists());
        source.as_ref().and_then(std::io::Error::raw_os_error)
    };
    let made = (0..).take_while(|n| fs::File::create(point.join(n.to_string())).is_ok()).count();
    // First the directory cannot be created; then it can, but no file in it.
    assert_eq!(refused(), Some(28));
    fs::remove_file(point.join((made - 1).to_string())).unwrap();
    assert_eq!(refused(), Some(28));
}

#[test]
fn host_layouts_are_what_they_say() {
    let name = "host_layouts_are_what_they_say";
    for filesystem in ["ext4", "xfs"] {
        let Some(disk) = disk(name, filesystem, 400) else { return };
        let extents = |layout| -> Option<Vec<u64>> {
            let workload = Workload { layout, readers: 4, ..named("seq-8") };
            let dataset = disk.lay_out(std::slice::from_ref(&workload), Bytes::from_mib(32));
            let files = fs::read_dir(dataset.directory()?).unwrap();
            let data = files.map(|entry| entry.unwrap().path());
            let data = data.filter(|path| path.extension() == Some("data".as_ref()));
            let counts = data.map(|path| {
                // "PATH: 8 extents found"
                let message = run("filefrag", &[path.to_str()?]).ok()?;
                message.rsplit(':').next()?.split_whitespace().next()?.parse().ok()
            });
            counts.collect()
        };
        let (Some(contiguous), Some(interleaved)) =
            (extents(Layout::Contiguous), extents(Layout::Interleaved))
        else {
            println!("SKIP {name}: no filefrag");
            return;
        };
        println!("{filesystem}: {contiguous:?} {interleaved:?}");
        // Pieces of 4 MiB; occasionally two are adjacent, or a block group separates them.
        assert!(contiguous.iter().all(|extents| *extents <= 3), "{contiguous:?}");
        assert!(interleaved.iter().sum::<u64>() >= 20, "{interleaved:?}");
    }
}

#[test]
fn host_an_interrupt_ends_a_trial_at_once() {
    let name = "host_an_interrupt_ends_a_trial_at_once";
    let Some(disk) = disk(name, "ext4", 200) else { return };
    // During work, and during a long pause.
    for think in [Nanos::from_millis(10), Nanos::from_secs(30)] {
        let workload = Workload { think, ..named("seq-8") };
        let dataset = disk.lay_out(std::slice::from_ref(&workload), Bytes::from_mib(8));
        let options = whole();
        let cancel = options.cancel.clone();
        let cancelled = thread::spawn(move || {
            thread::sleep(Duration::from_millis(200));
            cancel.cancel();
            Instant::now()
        });
        let result = run_trial(&Root::system(), &disk.storage(), &dataset, &workload, &options);
        let late = cancelled.join().unwrap().elapsed();
        assert!(matches!(result, Err(BenchError::Cancelled)));
        assert!(late < Duration::from_millis(250), "{late:?}");
    }
}

#[test]
fn host_dilation_stretches_time_and_is_taken_out() {
    let name = "host_dilation_stretches_time_and_is_taken_out";
    let Some(disk) = disk(name, "ext4", 200) else { return };
    let workload = Workload { think: Nanos::from_millis(2), ..named("seq-1") };
    let dataset = disk.lay_out(std::slice::from_ref(&workload), Bytes::from_mib(64));
    let run = |dilation| disk.trial(&dataset, &workload, &TrialOptions { dilation, ..millis(200) });
    let (plain, slow) = (run(1.0), run(4.0));
    assert!(slow.elapsed >= Nanos::from_millis(800) && plain.elapsed < Nanos::from_millis(500));
    // Pauses, most of the time, are four times as long: the corrected rates are alike.
    let ratio = slow.requests_per_second() / plain.requests_per_second();
    assert!((0.6..1.8).contains(&ratio), "{ratio}");
}

#[test]
fn host_storage_that_cannot_be_counted_still_works() {
    let name = "host_storage_that_cannot_be_counted_still_works";
    let Some(disk) = disk(name, "ext4", 100) else { return };
    let workload = named("mixed");
    let dataset = disk.lay_out(std::slice::from_ref(&workload), Bytes::from_mib(4));
    let mut storage = disk.storage();
    storage.devices.clear();
    let sample = run_trial(&Root::system(), &storage, &dataset, &workload, &whole()).unwrap();
    assert_eq!((sample.device, sample.amplification()), (None, None));
    assert!(sample.random_latency_quantile(0.5).is_some());
    assert!(sample.stream.latency.quantile(0.99).is_some());
    assert_eq!(sample.requests(), sample.stream.latency.count() + sample.random.latency.count());
    let share = sample.random.latency.count() as f64 / sample.requests() as f64;
    assert!((0.02..0.3).contains(&share), "{share}");
}

#[test]
fn host_our_own_reads_are_not_foreign_on_any_file_system() {
    let name = "host_our_own_reads_are_not_foreign_on_any_file_system";
    for filesystem in ["ext4", "xfs", "btrfs"] {
        let Some(disk) = disk(name, filesystem, 400) else { continue };
        disk.set_read_ahead(1024);
        for workload in [named("seq-8"), named("rand-mmap"), named("mixed"), named("stride")] {
            let dataset = disk.lay_out(std::slice::from_ref(&workload), Bytes::from_mib(16));
            let sample = disk.trial(&dataset, &workload, &whole());
            let device = sample.device.unwrap();
            println!(
                "{filesystem} {}: {} read, {} of it accounted to us",
                workload.name,
                device.bytes,
                device.own_bytes.unwrap_or_default()
            );
            let foreign = |it: &Disturbance| matches!(it, Disturbance::ForeignTraffic { .. });
            assert!(!sample.disturbances.iter().any(foreign), "{:?}", sample.disturbances);
            assert!(about_data(&sample).is_empty(), "{:?}", sample.disturbances);
        }
    }
}
