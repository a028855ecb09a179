//! The programs: one line each.

/// Where a program's work comes from.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// The function of this name in `work.py`.
    Python(&'static str),
    /// A shell command, in the directory of the data set.
    Shell(&'static str),
}

/// A program, its data, and how much it does.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    pub name: &'static str,
    /// The data set: the function of this name in `data.py`.
    pub data: &'static str,
    pub work: Work,
    /// Operations on a disk that serves some hundred reads per second; 0 where the data set
    /// determines the amount of work.
    pub operations: u64,
    pub description: &'static str,
}

const fn python(
    name: &'static str,
    data: &'static str,
    function: &'static str,
    operations: u64,
    description: &'static str,
) -> Program {
    Program { name, data, work: Work::Python(function), operations, description }
}

const fn shell(
    name: &'static str,
    data: &'static str,
    command: &'static str,
    description: &'static str,
) -> Program {
    Program { name, data, work: Work::Shell(command), operations: 0, description }
}

const CATS: &str = "for f in f*; do cat $f > /dev/null & done; wait";

pub const PROGRAMS: &[Program] = &[
    python("numpy-1", "array", "numpy_1", 1000, "random pages of a memory map"),
    python("numpy-8", "array", "numpy_8", 1000, "random pieces of 32 KiB of a memory map"),
    python("numpy-64", "array", "numpy_64", 500, "random pieces of 256 KiB of a memory map"),
    python("sqlite-scan", "sqlite", "sqlite_scan", 0, "full scan of a table"),
    python("sqlite-index", "sqlite", "sqlite_index", 1000, "rows in index order"),
    python("sqlite-lookups", "sqlite", "sqlite_lookups", 1000, "lookups by random keys"),
    python("duckdb-native", "duckdb", "duckdb_native", 0, "aggregate over a native table"),
    python("duckdb-parquet", "duckdb", "duckdb_parquet", 0, "aggregate over a Parquet file"),
    python("lmdb-get", "lmdb", "lmdb_get", 1000, "random gets from a memory map"),
    python("lmdb-scan", "lmdb", "lmdb_scan", 2000, "records in key order, leaves scattered"),
    python("safetensors", "safetensors", "safetensors_load", 0, "all tensors of a model"),
    shell("ripgrep", "tree", "rg --no-ignore -c zzzz d* || true", "search in 4,700 files"),
    shell("tar", "tree", "tar -cf - . | cat > /dev/null", "4,700 files and one of 400 MiB"),
    shell("git-log", "git", "git log --raw > /dev/null", "8,000 commits from one pack"),
    shell("cat-8", "files", CATS, "8 files of 64 MiB at once"),
];

/// How many times the operations of a hard disk fill about as much time on a faster device.
pub fn operations_factor(disk: &str) -> u64 {
    match disk {
        disk if disk.starts_with("cloud-ssd") => 2,
        disk if disk.starts_with("ssd") || disk.starts_with("nvme") => 8,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_its_work_and_its_data_in_the_scripts() {
        let defines = |script: &str, name| script.contains(&format!("\ndef {name}("));
        for program in PROGRAMS {
            assert!(defines(include_str!("data.py"), program.data), "{}", program.name);
            if let Work::Python(function) = program.work {
                assert!(defines(include_str!("work.py"), function), "{}", program.name);
            }
        }
    }
}
