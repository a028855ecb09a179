//! A simulation of one reader that touches pages of files, one after another.

use foreread_control::POLICIES;
use model::Spec;
use sim::{
    Limits, ReadStep, Reader, Scenario, SimMachine, SimOpenFile, SimOutcome, Start, lay_out, run,
};
use units::{Bytes, Nanos};
use workload::{AccessClass, Layout};

/// Simulates files of these sizes in pages, each opened once with `open`. Each touch names the file
/// and the page.
pub fn touch(
    policy: &str,
    model: &str,
    file_pages: &[u64],
    open: impl Fn(u32) -> SimOpenFile,
    touches: impl Iterator<Item = (u32, u64)>,
) -> SimOutcome {
    let step = |(open, page): (u32, u64)| ReadStep {
        open,
        offset: Bytes::new(page * 4096),
        length: Bytes::new(4096),
        class: AccessClass::Random,
        start: Start::After(Nanos::ZERO),
        advice: None,
    };
    let policy = POLICIES.parse(policy).expect("a policy");
    let model = Spec::parse(model).expect("a model");
    let machine = SimMachine { policy, seed: 3, ..SimMachine::new(model) };
    let sizes: Vec<Bytes> = file_pages.iter().map(|pages| Bytes::new(pages * 4096)).collect();
    let steps: Vec<ReadStep> = touches.map(step).collect();
    let scenario = Scenario {
        files: lay_out(&sizes, Layout::Contiguous, machine.filesystem.layout, Bytes::ZERO),
        opens: (0..).take(sizes.len()).map(open).collect(),
        readers: vec![Reader { steps: steps.into_iter() }],
        limits: Limits::default(),
    };
    run(&machine, scenario).expect("an outcome")
}
