//! Hostile processes, which try to make `auto` touch other files.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use observe::Census;
use units::Bytes;

use super::{Busy, evict, read_all, read_anew, stage};

/// A process that is killed when the test ends for any reason.
struct Stranger(Child);

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn host_a_hostile_process_cannot_lead_auto_to_files_outside_its_lists() {
    let name = "host_a_hostile_process_cannot_lead_auto_to_files_outside_its_lists";
    let Some(stage) = stage(name) else { return };
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let beyond = outside.path().join("beyond");
    fs::write(&beyond, vec![9; 8 << 20]).unwrap();
    File::open(&beyond).unwrap().sync_all().unwrap();
    let inside = stage.data("inside", 16, 1);
    let decoy = stage.data("decoy", 16, 2);
    let others = stage.data("others", 16, 3);
    // A process that the rules exclude. It has a file of its own, and one that it shares with this
    // process, which the rules allow.
    let passed = File::open(&others).unwrap();
    let mut stranger = Command::new("sh");
    stranger.args([
        "-c",
        "exec 9<\"$0\"; while :; do head -c 9000000 <&9 >/dev/null; exec 9<\"$0\"; done",
    ]);
    stranger.arg(&others).stdin(Stdio::from(passed.try_clone().unwrap()));
    stranger.stdout(Stdio::null()).stderr(Stdio::null());
    let stranger = Stranger(stranger.spawn().unwrap());
    let shared = passed.try_clone().unwrap();
    let (a, b, c, d) = (inside.clone(), beyond.clone(), inside.clone(), decoy.clone());
    let mount = stage.mount.clone();
    let busy = Busy::new()
        .with(move || read_anew(&inside, 1))
        .with(move || {
            evict(&shared);
            read_all(&shared, 3);
        })
        // A descriptor number that refers to two files in turn; both are read.
        .with(move || {
            let mut number = OwnedFd::from(File::open(&a).unwrap());
            for turn in 0..40 {
                let (path, byte) = if turn % 2 == 0 { (&b, 9) } else { (&a, 1) };
                let next = File::open(path).unwrap();
                evict(&next);
                rustix::io::dup2(&next, &mut number).unwrap();
                drop(next);
                read_all(&File::from(number.try_clone().unwrap()), byte);
            }
        })
        // Names that point elsewhere for a moment.
        .with(move || {
            let (link, moved) = (mount.join("link"), mount.join("moved"));
            std::os::unix::fs::symlink(&beyond, &link).unwrap();
            read_anew(&link, 9);
            fs::rename(&link, &moved).unwrap();
            fs::remove_file(&moved).unwrap();
            fs::rename(&d, &moved).unwrap();
            read_anew(&c, 1);
            fs::rename(&moved, &d).unwrap();
        });
    let own = format!("pid:{}", std::process::id());
    let mut auto = stage.auto(&["--only", &own]);
    let census = Census::load().unwrap();
    let own = std::process::id();
    auto.wait_for_windows(1);
    let begun = Instant::now();
    while auto.windows_set() < 20 && begun.elapsed() < Duration::from_secs(60) {
        // A file that the stranger holds, too, keeps the window that it was opened with. (The bdi
        // has another window for instants.)
        for file in stage.open_files(&census) {
            let held_by = |pid: u32| file.holders.iter().any(|holder| holder.pid == pid);
            if held_by(own) && held_by(stranger.0.id()) {
                assert!(file.window == Bytes::from_kib(128) && !file.random, "{file:?}");
            }
        }
        for file in census.of_process(own).unwrap() {
            let here = file.bdi == Some(stage.bdi());
            assert!(here || file.window == file.bdi_window && !file.random, "{file:?}");
        }
    }
    let set = auto.windows_set();
    drop(busy);
    drop(stranger);
    let lines = auto.lines.lock().unwrap().join("\n");
    assert!(!lines.contains("/beyond: set window"), "{lines}");
    assert!(!lines.contains("/others: set window"), "{lines}");
    println!("{set} windows set; {}", auto.end().trim());
    assert_eq!(stage.value(), stage.original);
}
