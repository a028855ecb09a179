//! The cluster with its table, cold at the start of each trial.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use crate::server::{Client, Cluster, RunLimit, Tools};
use host::StorageKind;
use rustix::fs::{Advice, fadvise, syncfs};
use study::Environment;
use sys::cachestat::cachestat;
use sys::hold::Hold;
use sys::page_size;
use units::{Bytes, Pages};

use super::{PgArm, PostgresPlan, Test, limit_of};
use crate::error::PgError;
use study::LiveTarget;

/// Number of the table's rows in a page of the server.
const ROWS_PER_PAGE: u64 = 18;
/// Page size of the server.
const PAGE_BYTES: u64 = 8192;
/// A prime: its multiples modulo the number of rows are spread over the whole table.
const ROW_STRIDE: u64 = 7919;
/// Time limit of loading, in seconds.
pub(super) const LOAD_TIMEOUT_S: u64 = 3600;

pub(super) fn table_size(plan: &PostgresPlan) -> Bytes {
    Bytes::new(plan.size.get() / PAGE_BYTES * PAGE_BYTES)
}

/// Returns the number of rows: never a multiple of the prime, which would reach only some rows.
pub(super) fn rows(plan: &PostgresPlan) -> u64 {
    let rows = plan.size.get() / PAGE_BYTES * ROWS_PER_PAGE;
    if rows.is_multiple_of(ROW_STRIDE) { rows - 1 } else { rows }
}

/// Returns the size of the pages that contain the first `some` rows by the shuffled column.
pub(super) fn touched(plan: &PostgresPlan, some: u64) -> Bytes {
    let rows = rows(plan);
    let mut pages = vec![false; (rows / ROWS_PER_PAGE + 1) as usize];
    // Rows are stored by `n`, from 1, and `shuffled` is n × ROW_STRIDE modulo the number of rows.
    for n in (1..=rows).filter(|n| n * ROW_STRIDE % rows < some) {
        pages[((n - 1) / ROWS_PER_PAGE) as usize] = true;
    }
    Bytes::new(pages.iter().filter(|touched| **touched).count() as u64 * PAGE_BYTES)
}

pub(super) struct Session {
    cluster: Cluster,
    pub(super) client: Client,
    shared_buffers: Bytes,
    /// Files of the table and of the index on its key.
    watched: Vec<PathBuf>,
    limit: RunLimit,
}

impl Session {
    /// Creates the cluster and loads it, without timing on a virtual disk.
    pub(super) fn make(
        plan: &PostgresPlan,
        tools: &Tools,
        place: &LiveTarget,
        environment: &Environment,
    ) -> Result<Self, PgError> {
        room(plan, place)?;
        place.set_timing(false)?;
        let limit = limit_of(environment, LOAD_TIMEOUT_S);
        let cluster = Cluster::create(tools, &place.storage.path, &limit)?;
        let client = cluster.client()?;
        let (shared_buffers, watched) = (plan.shared_buffers, Vec::new());
        let mut session = Self { cluster, client, shared_buffers, watched, limit };
        // The data need not survive a power loss.
        let quick = [("fsync", "off"), ("max_wal_size", "1GB"), ("shared_buffers", "64MB")];
        let quick = quick.map(|(name, value)| (name.to_owned(), value.to_owned()));
        session.cluster.start(&quick)?;
        session.client.run(&load(plan), &session.limit)?;
        if plan.tests.contains(&Test::Pgbench) {
            session.client.initialise_pgbench(scale(plan), &session.limit)?;
        }
        session.watched = session.files()?;
        session.cluster.stop()?;
        place.set_timing(true)?;
        Ok(session)
    }

    /// Returns the files of the table and of the index on its key: one file per GiB.
    fn files(&self) -> Result<Vec<PathBuf>, PgError> {
        let names = "select pg_relation_filepath('foreread');\n\
                     select pg_relation_filepath('foreread_id');";
        let said = self.client.run(names, &self.limit)?;
        let data = self.cluster.data();
        let mut files = Vec::new();
        for name in said.lines() {
            let first = data.join(name);
            let more = (1..).map(|number| data.join(format!("{name}.{number}")));
            files.extend(std::iter::once(first).chain(more).take_while(|path| path.is_file()));
        }
        Ok(files)
    }

    /// Stops the server, evicts its files, and starts it with these settings.
    pub(super) fn start_cold(&mut self, arm: &PgArm) -> Result<(), PgError> {
        self.cluster.stop()?;
        let data = self.cluster.data();
        let directory = File::open(&data).map_err(PgError::io("open", data.clone()))?;
        syncfs(&directory).map_err(|errno| PgError::io("sync", data.clone())(errno.into()))?;
        evict(&data)?;
        if self.cached()? > 0.01 {
            return Err(PgError::NotPossible(format!(
                "the table in {} stays in the page cache: another process keeps it there",
                data.display()
            )));
        }
        let own = ("shared_buffers".to_owned(), format!("{}kB", self.shared_buffers.get() / 1024));
        let mut settings = vec![own];
        settings.extend(arm.server.iter().cloned());
        self.cluster.start(&settings)
    }

    pub(super) fn watched_size(&self) -> Result<Bytes, PgError> {
        let size = |path: &PathBuf| {
            let known = path.metadata().map_err(PgError::io("look at", path.clone()))?;
            Ok(Bytes::new(known.len()))
        };
        self.watched.iter().map(size).sum()
    }

    /// Returns the share of table and index that is in the page cache.
    pub(super) fn cached(&self) -> Result<f64, PgError> {
        let mut cached = Pages::ZERO;
        for path in &self.watched {
            let file = File::open(path).map_err(PgError::io("open", path.clone()))?;
            cached += cachestat(file.as_fd(), Bytes::ZERO, Bytes::ZERO)
                .map_err(PgError::io("look for cached pages of", path.clone()))?
                .cached;
        }
        let all = self.watched_size()?.get() as f64;
        Ok(cached.to_bytes(page_size()).get() as f64 / all.max(1.0))
    }

    /// Holds cached data of table and index on a host that reclaims idle cache. Drop the result
    /// before the next trial, because it prevents eviction.
    pub(super) fn hold(&self) -> Result<Vec<Hold>, PgError> {
        let hold = |path: &PathBuf| {
            let fail = |what| PgError::io(what, path.clone());
            let file = File::open(path).map_err(fail("open"))?;
            let length = file.metadata().map_err(fail("look at"))?.len();
            Hold::new(file.as_fd(), Bytes::new(length)).map_err(fail("map"))
        };
        self.watched.iter().map(hold).collect()
    }

    /// Stops the server and removes its files.
    pub(super) fn remove(self) -> Result<(), PgError> {
        self.cluster.remove()
    }
}

/// Checks that the target is a directory with space for the table, its indexes, and the write-ahead
/// log.
fn room(plan: &PostgresPlan, place: &LiveTarget) -> Result<(), PgError> {
    let path = place.storage.path.clone();
    if place.storage.kind != StorageKind::Directory {
        return Err(PgError::Usage(format!(
            "{} is not a directory: a cluster needs one on a filesystem",
            path.display()
        )));
    }
    if place.storage.read_only() {
        return Err(bench::BenchError::ReadOnly { path }.into());
    }
    let needed = plan.size * 3 + Bytes::from_mib(200);
    let available = place.storage.space()?.available;
    if needed > available {
        return Err(bench::BenchError::NoSpace { path, needed, available, source: None }.into());
    }
    Ok(())
}

/// Returns the statements that load the table: `id` follows its order, `shuffled` does not.
fn load(plan: &PostgresPlan) -> String {
    let rows = rows(plan);
    format!(
        "create table foreread (id int not null, shuffled int not null, pad text not null);\n\
         insert into foreread\n\
         select n, (n::bigint * {ROW_STRIDE} % {rows})::int, repeat('x', 400)\n\
         from generate_series(1, {rows}) n;\n\
         create index foreread_id on foreread (id);\n\
         create index foreread_shuffled on foreread (shuffled);\n\
         vacuum (freeze, analyze) foreread;\n\
         checkpoint;\n"
    )
}

/// Returns the scale for pgbench tables of about the same size; one unit is 16 MB.
fn scale(plan: &PostgresPlan) -> u64 {
    (plan.size.get() / 16_000_000).max(1)
}

/// Evicts all files below a directory from the page cache.
fn evict(directory: &Path) -> Result<(), PgError> {
    let listing = PgError::io("list", directory);
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => return Err(listing(error)),
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            evict(&path)?;
        } else if kind.is_file() {
            let file = File::open(&path).map_err(PgError::io("open", path.clone()))?;
            fadvise(&file, 0, None, Advice::DontNeed)
                .map_err(|errno| PgError::io("evict", path.clone())(errno.into()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::plan;
    use super::*;

    #[test]
    fn rows_are_visited_all() {
        for mib in [1, 8, 100] {
            let plan = PostgresPlan { size: Bytes::from_mib(mib), ..plan() };
            assert!(!rows(&plan).is_multiple_of(ROW_STRIDE));
            assert_eq!(rows(&plan) / ROWS_PER_PAGE, table_size(&plan).get() / PAGE_BYTES);
            assert_eq!(touched(&plan, rows(&plan)), table_size(&plan));
            assert_eq!(touched(&plan, 1), Bytes::new(PAGE_BYTES));
            let some = touched(&plan, rows(&plan) / 20);
            assert!(some * 21 > table_size(&plan) && some < table_size(&plan), "{some}");
            assert!(load(&plan).contains(&format!("% {}", rows(&plan))));
        }
        let unlucky = PostgresPlan { size: Bytes::new(PAGE_BYTES * ROW_STRIDE), ..plan() };
        assert_eq!(rows(&unlucky), ROW_STRIDE * ROWS_PER_PAGE - 1);
    }
}
