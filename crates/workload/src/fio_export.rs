//! Exports our own workloads as fio job files.

use std::fmt::Write;

use units::Bytes;

use crate::{Access, AccessMethod, Hint, Pattern, Sharing, Workload, WorkloadError};

/// A workload exported for fio.
#[derive(Clone, Debug, PartialEq)]
pub struct ExportedJob {
    pub jobs: String,
    /// Requests of each reader as an I/O log (version 2), as file names and text; only if fio lacks
    /// the pattern.
    pub logs: Vec<(String, String)>,
}

/// Maximum number of requests in all logs.
const LOGGED_MAX: usize = 4_000_000;

/// Exports a workload as a job file. `file_size` applies to files without a stated size; `seed` to
/// patterns that fio lacks.
pub fn export_fio(
    workload: &Workload,
    file_size: Bytes,
    seed: u64,
) -> Result<ExportedJob, WorkloadError> {
    workload.validate()?;
    let size = workload.file_size.unwrap_or(file_size);
    match pattern(workload, size) {
        Some(pattern) => Ok(ExportedJob { jobs: jobs(workload, size, &pattern), logs: Vec::new() }),
        None => logged(workload, file_size, seed),
    }
}

/// Returns the lines for the pattern, if fio supports it.
fn pattern(workload: &Workload, size: Bytes) -> Option<String> {
    let block = workload.block.get();
    let lines = match workload.pattern {
        Pattern::Sequential => "rw=read\n".to_owned(),
        Pattern::Write => "rw=write\nend_fsync=1\n".to_owned(),
        Pattern::Uniform => "rw=randread\n".to_owned(),
        Pattern::Zipf { theta } => {
            format!("rw=randread\nrandom_distribution=zipf:{theta}\nnorandommap=1\n")
        }
        Pattern::Stride { step } => {
            // fio would start again at the end, so it must stop after reading each block once.
            let part = match workload.sharing {
                Sharing::OwnFile => size.get().saturating_mul(workload.files_per_reader.into()),
                _ => size.get() / u64::from(workload.readers),
            };
            let amount = part.div_ceil(step.get()).saturating_mul(block);
            format!("rw=read:{}\nio_size={amount}\n", step.get() - block)
        }
        Pattern::Backward => format!("rw=read:-{}\n", 2 * block),
        Pattern::SeekAndRead { blocks } => format!("rw=randread:{blocks}\n"),
        Pattern::Interleaved { .. }
        | Pattern::Mixed { .. }
        | Pattern::Disorder { .. }
        | Pattern::Rewrite
        | Pattern::Trace
        | Pattern::Outside => return None,
    };
    // fio cannot read parts of several shared files, or share open files.
    let shared = workload.sharing != Sharing::OwnFile;
    let whole = size.get().is_multiple_of(u64::from(workload.readers) * block);
    let same = !shared
        || (workload.sharing == Sharing::SharedFile && workload.files_per_reader == 1 && whole);
    same.then_some(lines)
}

fn jobs(workload: &Workload, size: Bytes, pattern: &str) -> String {
    let mut text = head(workload);
    let _ = writeln!(text, "[{}]", workload.name);
    text.push_str(pattern);
    let block = workload.block.get();
    let _ = match workload.block_min {
        Some(least) => writeln!(text, "bsrange={}-{block}", least.get()),
        None => writeln!(text, "bs={block}"),
    };
    text.push_str(&common(workload));
    let readers = workload.readers;
    let _ = writeln!(text, "numjobs={readers}");
    if workload.sharing == Sharing::OwnFile {
        let files = workload.files_per_reader;
        let _ = writeln!(text, "nrfiles={files}");
        if files > 1 {
            text.push_str("file_service_type=sequential\n");
        }
        let _ = writeln!(text, "size={}", size.get().saturating_mul(files.into()));
    } else {
        let part = size.get() / u64::from(readers);
        let _ = writeln!(text, "filename={}.data\nsize={part}", workload.name);
        let _ = writeln!(text, "offset_increment={part}");
    }
    text
}

fn head(workload: &Workload) -> String {
    format!(
        "; {}: written by foreread export --fio. Files are created in the working directory.\n\
         ; Evict them before each run; the effective read-ahead is that of their device.\n",
        workload.name
    )
}

/// Returns the lines that do not depend on the pattern.
fn common(workload: &Workload) -> String {
    let engine = match workload.access {
        AccessMethod::Read => "psync",
        AccessMethod::Mmap => "mmap",
    };
    let hint = match workload.hint {
        Hint::None => "0",
        Hint::Sequential => "sequential",
        Hint::Random => "random",
    };
    let mut text = format!("ioengine={engine}\ndirect=0\ninvalidate=1\nfadvise_hint={hint}\n");
    if workload.think > units::Nanos::ZERO {
        // fio counts in microseconds.
        let _ = writeln!(text, "thinktime={}us", workload.think.get().div_ceil(1000));
    }
    text
}

/// Exports the requests themselves, for a pattern that fio lacks.
fn logged(workload: &Workload, file_size: Bytes, seed: u64) -> Result<ExportedJob, WorkloadError> {
    let sizes = workload.data_files(file_size);
    let name = |file: u32| format!("{}.{file}.data", workload.name);
    let mut exported = ExportedJob { jobs: head(workload), logs: Vec::new() };
    // fio creates no files for a log.
    for (file, size) in (0..).zip(&sizes) {
        let (name, size) = (name(file), size.get());
        let _ = writeln!(exported.jobs, "[{name}]\nfilename={name}\nsize={size}");
        exported.jobs.push_str("rw=read\ncreate_only=1\n\n");
    }
    let (verbs, direction): (&[&str], &str) = match workload.pattern {
        Pattern::Rewrite => (&["read", "write"], "rw=rw\nend_fsync=1"),
        _ => (&["read"], "rw=read"),
    };
    let mut lines = 0usize;
    for reader in 0..workload.readers {
        let own: Vec<u32> = (0..workload.files_per_reader)
            .map(|file| workload.data_file_of(workload.file_of(reader, file)))
            .collect();
        let own_sizes: Vec<Bytes> =
            own.iter().map(|file| sizes.get(*file as usize).copied().unwrap_or_default()).collect();
        let mut log = "fio version 2 iolog\n".to_owned();
        let files: std::collections::BTreeSet<u32> = own.iter().copied().collect();
        for verb in ["add", "open"] {
            files.iter().for_each(|file| log.push_str(&format!("{} {verb}\n", name(*file))));
        }
        // A pattern without an end gets one request for each block of the data.
        let blocks: u64 =
            own_sizes.iter().map(|size| size.get().div_ceil(workload.block.get())).sum();
        let endless = matches!(workload.pattern, Pattern::Zipf { .. });
        let most = if endless { blocks as usize } else { usize::MAX };
        for access in workload.accesses(reader, &own_sizes, seed)?.take(most) {
            // fio's logs have no advice.
            if access.advice.is_some() {
                continue;
            }
            lines += 1;
            if lines > LOGGED_MAX {
                return Err(WorkloadError::Conflict {
                    first: format!("pattern = {:?}", workload.pattern.name()),
                    second: format!("files of {file_size}"),
                    why: "fio has no such pattern, and a log of its requests would be too long: \
                          use smaller files (--size)",
                });
            }
            let Access { file, offset, length, .. } = access;
            let file = own.get(file as usize).copied().unwrap_or_default();
            for verb in verbs {
                let _ = writeln!(log, "{} {verb} {} {}", name(file), offset.get(), length.get());
            }
        }
        files.iter().for_each(|file| log.push_str(&format!("{} close\n", name(*file))));
        let log_name = format!("{}.{reader}.iolog", workload.name);
        let _ = writeln!(exported.jobs, "[{}.{reader}]\nread_iolog={log_name}", workload.name);
        if reader == 0 {
            exported.jobs.push_str("stonewall\n");
        }
        exported.jobs.push_str(&format!("replay_no_stall=1\n{direction}\n"));
        exported.jobs.push_str(&common(workload));
        exported.jobs.push('\n');
        exported.logs.push((log_name, log));
    }
    Ok(exported)
}
