//! Files, open files, readers and their steps.

use model::layout::FileLayout;
use units::{Bytes, Nanos};
use workload::{
    Access, AccessClass, AccessMethod, Accesses, Hint, Layout, Pattern, RangeAdvice, Sharing,
    Workload, WorkloadError,
};

/// A file and its location on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileOnDisk {
    pub size: Bytes,
    /// Device offset of its start.
    pub start: Bytes,
    /// Order of its bytes on the device.
    pub layout: FileLayout,
    /// If set, the file consists of pieces of the first size, and the starts of consecutive pieces
    /// are the second size apart. Such a file needs no metadata.
    pub pieces: Option<(Bytes, Bytes)>,
}

/// An open file (open file description).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimOpenFile {
    /// Index of the file in the scenario.
    pub file: u32,
    pub method: AccessMethod,
    pub hint: Hint,
    /// Executable part of the mapping.
    pub code: Option<policy::Extent>,
    /// The program closes the descriptor once the file is mapped.
    pub only_mapped: bool,
}

impl SimOpenFile {
    /// An open file without a hint, with its descriptor and without code.
    pub fn new(file: u32, method: AccessMethod) -> Self {
        Self { file, method, hint: Hint::None, code: None, only_mapped: false }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// This long after the end of the reader's previous step.
    After(Nanos),
    /// At this time, or at the end of the reader's previous step if that is later.
    At(Nanos),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadStep {
    /// Index of the open file in the scenario.
    pub open: u32,
    pub offset: Bytes,
    /// Requested length; a read stops at the end of the file.
    pub length: Bytes,
    /// Class of the latency statistics that include the step.
    pub class: AccessClass,
    pub start: Start,
    /// The step is advice for the range, not a read.
    pub advice: Option<RangeAdvice>,
}

/// A reader, which executes one step after another.
#[derive(Clone, Debug)]
pub struct Reader<I> {
    pub steps: I,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// No reader starts a step at or after this time.
    pub time: Nanos,
    /// Whether the simulation ends when the first reader finishes, as a trial does, so that no tail
    /// with fewer readers is measured.
    pub ends_with_first: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { time: Nanos::MAX, ends_with_first: false }
    }
}

/// Files, open files and their readers.
#[derive(Clone, Debug)]
pub struct Scenario<I> {
    pub files: Vec<FileOnDisk>,
    pub opens: Vec<SimOpenFile>,
    pub readers: Vec<Reader<I>>,
    pub limits: Limits,
}

/// The steps of one reader of a declared workload.
#[derive(Clone, Debug)]
pub struct AccessSteps {
    accesses: Accesses,
    /// Open file of each of the reader's files. In a mixed workload with two open files, those for
    /// random reads follow those for streams.
    opens: Vec<u32>,
    random_opens_from: usize,
    think: Nanos,
    has_think_times: bool,
}

/// A source of the steps of a reader, in runs.
pub trait Steps {
    /// Returns the next step and its number of consecutive occurrences, each of which starts where
    /// the previous one ended and is otherwise equal.
    fn next_run(&mut self) -> Option<(ReadStep, u64)>;

    /// Returns the next step that is not sequential, if it is known already.
    #[inline]
    fn peek_random(&self) -> Option<ReadStep> {
        None
    }
}

impl<I: Iterator<Item = ReadStep>> Steps for I {
    #[inline]
    fn next_run(&mut self) -> Option<(ReadStep, u64)> {
        self.next().map(|step| (step, 1))
    }
}

impl AccessSteps {
    #[inline]
    fn step(&self, access: Access) -> ReadStep {
        let random = access.class == AccessClass::Random;
        let place = access.file as usize + if random { self.random_opens_from } else { 0 };
        ReadStep {
            open: self.opens[place],
            offset: access.offset,
            length: access.length,
            class: access.class,
            start: match access.not_before {
                Nanos::ZERO => Start::After(self.think),
                time if self.has_think_times => Start::After(time),
                time => Start::At(time),
            },
            advice: access.advice,
        }
    }
}

impl Steps for AccessSteps {
    #[inline]
    fn next_run(&mut self) -> Option<(ReadStep, u64)> {
        let (access, times) = self.accesses.next_run()?;
        Some((self.step(access), times))
    }

    #[inline]
    fn peek_random(&self) -> Option<ReadStep> {
        self.accesses.peek_random().map(|access| self.step(*access))
    }
}

impl IntoIterator for AccessSteps {
    type Item = ReadStep;
    type IntoIter = SingleSteps;

    fn into_iter(self) -> SingleSteps {
        SingleSteps(self)
    }
}

/// The steps of one reader of a declared workload, one by one.
#[derive(Clone, Debug)]
pub struct SingleSteps(AccessSteps);

impl Iterator for SingleSteps {
    type Item = ReadStep;

    fn next(&mut self) -> Option<ReadStep> {
        let access = self.0.accesses.next()?;
        Some(self.0.step(access))
    }
}

/// Size of the pieces in which files that are written concurrently alternate.
const INTERLEAVE_SIZE: Bytes = Bytes::from_mib(1);

/// Returns the locations of files of these sizes that are laid out from `first` on.
pub fn lay_out(sizes: &[Bytes], layout: Layout, rule: FileLayout, first: Bytes) -> Vec<FileOnDisk> {
    let step = Bytes::new(INTERLEAVE_SIZE.get() * sizes.len() as u64);
    let mut at = first;
    let place = |(index, size): (u64, &Bytes)| match layout {
        Layout::Contiguous => {
            let start = at;
            at += rule.footprint(*size);
            FileOnDisk { size: *size, start, layout: rule, pieces: None }
        }
        Layout::Interleaved => FileOnDisk {
            size: *size,
            start: first + INTERLEAVE_SIZE * index,
            layout: rule,
            pieces: Some((INTERLEAVE_SIZE, step)),
        },
    };
    (0..).zip(sizes).map(place).collect()
}

impl Scenario<AccessSteps> {
    /// Returns the readers of a workload over these files, which must be all of its data files in
    /// order ([`Workload::data_files`]).
    ///
    /// # Errors
    ///
    /// If the workload is invalid, or the files are too few or too small for it.
    pub fn of_workload(
        workload: &Workload,
        files: Vec<FileOnDisk>,
        seed: u64,
    ) -> Result<Self, WorkloadError> {
        workload.validate()?;
        let wanted = workload.data_files(Bytes::ZERO).len();
        if files.len() != wanted {
            let (workload, given) = (workload.name.clone(), files.len());
            return Err(WorkloadError::WrongFileCount { workload, wanted: wanted as u32, given });
        }
        let has_own_files =
            matches!(workload.pattern, Pattern::Mixed { same_open_file: false, .. });
        let mut opens: Vec<SimOpenFile> = Vec::new();
        let mut readers = Vec::new();
        for reader in 0..workload.readers {
            let own: Vec<u32> =
                (0..workload.files_per_reader).map(|file| workload.file_of(reader, file)).collect();
            let data_file = |file: u32| workload.data_file_of(file);
            let size = |&file: &u32| files.get(data_file(file) as usize).map(|it| it.size);
            let sizes: Vec<Bytes> = own.iter().filter_map(size).collect();
            let accesses = workload.accesses(reader, &sizes, seed)?;
            let times = if has_own_files { 2 } else { 1 };
            let shared = workload.sharing == Sharing::SharedOpenFile && reader > 0;
            if !shared {
                let open = |&file: &u32| {
                    let (method, hint) = workload.access_of(file);
                    SimOpenFile { hint, ..SimOpenFile::new(data_file(file), method) }
                };
                for _ in 0..times {
                    opens.extend(own.iter().map(open));
                }
            }
            let count = (own.len() * times) as u32;
            let first = opens.len() as u32 - count;
            let steps = AccessSteps {
                accesses,
                opens: (first..first + count).collect(),
                random_opens_from: if has_own_files { own.len() } else { 0 },
                think: workload.think,
                has_think_times: workload.has_think_times(),
            };
            readers.push(Reader { steps });
        }
        Ok(Self { files, opens, readers, limits: Limits::default() })
    }
}
