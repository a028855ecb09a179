//! Simulations whose results are known.

use foreread_sim::{
    Arrival, FileOnDisk, FileSystem, Limits, Scenario, SimMachine, SimOutcome, lay_out, run,
};
use model::Spec;
use units::{Bytes, Kib, Nanos};
use workload::Workload;

fn machine(model: &str, read_ahead: u64) -> SimMachine {
    let model = Spec::parse(model).expect("a model");
    SimMachine { read_ahead: Kib::new(read_ahead), seed: 1, ..SimMachine::new(model) }
}

fn files(machine: &SimMachine, workload: &Workload, size: Bytes) -> Vec<FileOnDisk> {
    let sizes = vec![size; workload.files() as usize];
    lay_out(&sizes, workload.layout, machine.filesystem.layout, Bytes::ZERO)
}

fn trial(machine: &SimMachine, workload: &str, size: Bytes, time: Nanos) -> SimOutcome {
    let workload = Workload::named(workload).expect("of the suite");
    let files = files(machine, &workload, size);
    let mut scenario = Scenario::of_workload(&workload, files, 7).expect("a scenario");
    scenario.limits = Limits { time, ends_with_first: true };
    run(machine, scenario).expect("an outcome")
}

fn rate(outcome: &SimOutcome) -> f64 {
    outcome.useful().get() as f64 / 1e6 / outcome.elapsed.as_secs_f64()
}

#[test]
fn a_disk_streams_at_its_media_rate() {
    for read_ahead in [32, 128, 512, 2048] {
        let machine = machine("hdd-2008", read_ahead);
        let outcome = trial(&machine, "seq-1", Bytes::from_gib(1), Nanos::from_secs(2));
        assert!((100.0..108.0).contains(&rate(&outcome)), "{read_ahead}: {outcome:?}");
        assert!(outcome.amplification().is_some_and(|factor| factor < 1.05), "{outcome:?}");
    }
}

#[test]
fn eight_streams_on_a_disk_need_read_ahead() {
    let of = |read_ahead| {
        let machine = machine("hdd-2008", read_ahead);
        rate(&trial(&machine, "seq-8", Bytes::from_gib(1), Nanos::from_secs(2)))
    };
    let (least, usual) = (of(4), of(128));
    assert!(usual > 10.0 * least, "{least} {usual}");
}

#[test]
fn indirect_blocks_are_read_on_the_way() {
    let machine = SimMachine { filesystem: FileSystem::EXT3, ..machine("hdd-2008", 128) };
    let outcome = trial(&machine, "seq-1", Bytes::from_gib(1), Nanos::from_secs(2));
    let four_mib = outcome.useful().get() as f64 / (4 << 20) as f64;
    let blocks = outcome.device.metadata.get() as f64 / 4096.0;
    assert!((blocks - four_mib).abs() < 2.0, "{blocks} for {four_mib}");
}

#[test]
fn pages_arrive_as_they_do_in_the_kernel_of_the_policy() {
    let of = |policy: &str, arrival| {
        let base = machine("ssd-sata,max_request=256K", 1088);
        let machine = SimMachine { policy: policy.parse().expect("a policy"), arrival, ..base };
        rate(&trial(&machine, "seq-1", Bytes::from_mib(256), Nanos::from_secs(1)))
    };
    for (policy, kernel) in [
        ("linux-legacy", Arrival::Requests),
        ("linux-on-demand,since=2.6.23", Arrival::Requests),
        ("linux-on-demand", Arrival::Windows),
        ("linux-6.18", Arrival::Windows),
        ("fixed,blocks=512", Arrival::Requests),
    ] {
        let (requests, windows) =
            (of(policy, Some(Arrival::Requests)), of(policy, Some(Arrival::Windows)));
        assert!(requests > windows, "{policy}: {requests} {windows}");
        let same = if kernel == Arrival::Windows { windows } else { requests };
        assert!((of(policy, None) - same).abs() < 1e-9, "{policy}: {requests} {windows}");
    }
}
