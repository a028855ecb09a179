//! Open files and their windows.

use host::BdiId;
use observe::{FileKind, OpenFile, OpenFileFilter};
use serde::Serialize;
use units::{Bytes, Kib};

/// An open file on a bdi, with its window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenWindow {
    pub bdi: BdiId,
    #[serde(rename = "window_kib")]
    pub window: Kib,
    /// The window that the file would have if it were opened now.
    #[serde(rename = "window_if_opened_now_kib")]
    pub fresh: Kib,
    /// True if `FADV_RANDOM` disables read-ahead for `read(2)`.
    pub random: bool,
    /// True for a regular file that is open for reading through the page cache.
    pub cached: bool,
    #[serde(rename = "size_bytes")]
    pub size: Bytes,
    /// The processes that have the file open: process ID and name.
    pub holders: Vec<(u32, String)>,
}

impl OpenWindow {
    /// Returns whether the window differs from that of newly opened files. Twice that window is the
    /// effect of `FADV_SEQUENTIAL`, which a process requested, so it does not count.
    pub fn outdated(&self) -> bool {
        let sequential = self.fresh.get().checked_mul(2) == Some(self.window.get());
        self.cached && self.window != self.fresh && !sequential
    }
}

/// All open files with their windows, or why they could not be listed.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Windows {
    pub files: Vec<OpenWindow>,
    /// Why the files could not be listed; `None` if they were, or were not requested.
    pub unseen: Option<String>,
}

impl Windows {
    /// Lists the open files of the running kernel.
    pub fn of_kernel() -> Self {
        match observe::open_files(&OpenFileFilter::default()) {
            Ok(files) => Self { files: files.iter().filter_map(window).collect(), unseen: None },
            Err(error) => Self { files: Vec::new(), unseen: Some(error.to_string()) },
        }
    }

    pub fn not_asked() -> Self {
        Self::default()
    }

    pub fn on(&self, bdi: &BdiId) -> impl Iterator<Item = &OpenWindow> {
        self.files.iter().filter(move |file| file.bdi == *bdi)
    }
}

fn window(file: &OpenFile) -> Option<OpenWindow> {
    let mut holders: Vec<(u32, String)> =
        file.holders.iter().map(|holder| (holder.pid, holder.comm.clone())).collect();
    holders.dedup();
    Some(OpenWindow {
        bdi: file.bdi.clone()?,
        window: file.window.to_kib_floor(),
        fresh: file.bdi_window.to_kib_floor(),
        random: file.random,
        cached: file.readable && !file.direct && file.kind == FileKind::Regular,
        size: file.size,
        holders,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_its_owner_asked_for_is_not_outdated() {
        let file = |window, fresh| OpenWindow {
            bdi: BdiId::new("8:0").unwrap(),
            window: Kib::new(window),
            fresh: Kib::new(fresh),
            random: false,
            cached: true,
            size: Bytes::from_mib(1),
            holders: Vec::new(),
        };
        assert!(file(128, 4096).outdated());
        assert!(!file(256, 128).outdated(), "FADV_SEQUENTIAL");
        assert!(!file(128, 128).outdated());
        assert!(!OpenWindow { cached: false, ..file(128, 4096) }.outdated());
    }
}
