//! `foreread vdisk`.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use host::{bdis_on, resolve};
use report::clean::plain;
use tunables::{DeviceLock, TunableError};
use vdisk::{
    DiskConfig, DiskCounters, DiskListing, DiskState, Lifetime, ServerCommand, VdiskError,
    VirtualDisk,
};

use super::Context;
use super::vdisk_json::{listing_json, record_json, versioned};
use crate::exit::Exit;
use crate::output;
use crate::signals::Signals;

/// Create, list and remove virtual disks that any program can use
///
/// A virtual disk is a real filesystem on a real block device; only the service times come from a
/// model. It exists until it is removed. Data written to it is kept in memory.
///
///   foreread vdisk create raid10-2008,fs=xfs,size=8G --name old-array
///   fio --directory=/run/foreread/vdisk/old-array/mnt …
///   foreread vdisk show old-array --watch
///   foreread vdisk remove old-array
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub struct VdiskArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create a virtual disk and mount it
    Create {
        /// The model (`foreread models` lists them), followed by options: fs=xfs, ext4, ext3, btrfs
        /// or raw; size=8G; dilation=4 (times slower than the model; 0.5 is twice as fast) or auto;
        /// seed=1; any key of the model
        #[arg(value_name = "MODEL[,KEY=VALUE…]")]
        words: String,
        /// Name of the disk; default: the model's name with a number
        #[arg(long)]
        name: Option<String>,
        /// Change nothing; print what would be created
        #[arg(short = 'n', long, conflicts_with = "json")]
        dry_run: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the virtual disks of this machine
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a virtual disk and its counters
    Show {
        /// Name of the disk
        name: String,
        /// Refresh every second, with the counts of that second
        #[arg(short, long)]
        watch: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Unmount and remove virtual disks, including those whose server has died
    Remove {
        /// Names of the disks
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        names: Vec<String>,
        /// Remove all virtual disks
        #[arg(long)]
        all: bool,
        /// Change nothing; print what would be removed
        #[arg(short = 'n', long)]
        dry_run: bool,
    },
    #[command(hide = true)]
    Serve {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

impl VdiskArgs {
    pub fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self.action {
            Action::Create { words, name, dry_run, json } => {
                create(context, &words, name, dry_run, json)
            }
            Action::List { json } => list(context, json),
            Action::Show { name, watch: true, json } => watch(context, &name, json),
            Action::Show { name, watch: false, json } => {
                let listing = vdisk::show(&context.dirs, &name)?;
                if json {
                    output::print_json(&versioned(listing_json(&listing)))?
                } else {
                    output::print(&page(&listing))?
                }
                Ok(Exit::Fine)
            }
            Action::Remove { names, all, dry_run } => remove(context, names, all, dry_run),
            Action::Serve { args } => {
                vdisk::serve_main(args)?;
                Ok(Exit::Fine)
            }
        }
    }
}

fn create(
    context: &Context,
    words: &str,
    name: Option<String>,
    dry_run: bool,
    json: bool,
) -> anyhow::Result<Exit> {
    let words = words.strip_prefix("virtual:").unwrap_or(words);
    let mut config = DiskConfig::parse(words)?;
    config.name = name;
    if dry_run {
        let (size, filesystem) = (config.size, config.filesystem);
        output::print(&format!(
            "would create a virtual disk of {size} with {filesystem}: {}\nundo: foreread vdisk \
             remove {}\n",
            plain(&config.to_string()),
            plain(config.name.as_deref().unwrap_or("NAME"))
        ))?;
        return Ok(Exit::Fine);
    }
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let server = ServerCommand { program, args: vec!["vdisk".into(), "serve".into()] };
    let disk = VirtualDisk::create(&context.dirs, config, &server, Lifetime::Kept)?;
    if json {
        output::print_json(&versioned(record_json(disk.record())))?;
    } else {
        output::print_document(&format!("{}\n", disk.target().display()))?;
        context.note(&format!(
            "virtual disk {} on {}, {}; remove it with: foreread vdisk remove {}",
            disk.name(),
            disk.device().display(),
            pace(disk.dilation()),
            disk.name()
        ));
    }
    Ok(Exit::Fine)
}

/// Describes how fast a disk is.
pub fn pace(dilation: f64) -> String {
    if dilation == 1.0 {
        "as fast as its model".to_owned()
    } else if dilation < 1.0 {
        format!("{:.1} times faster than its model", 1.0 / dilation)
    } else {
        format!("{dilation} times slower than its model")
    }
}

fn list(context: &Context, json: bool) -> anyhow::Result<Exit> {
    let disks = vdisk::list(&context.dirs)?;
    if json {
        let disks: Vec<_> = disks.iter().map(listing_json).collect();
        output::print_json(&versioned(serde_json::json!({ "virtual_disks": disks })))?;
    } else if disks.is_empty() {
        context.note("no virtual disks: foreread vdisk create MODEL creates one");
    } else {
        let mut text = format!("{:<20} {:<10} {:<12} {}\n", "NAME", "STATE", "DEVICE", "MOUNTED");
        for disk in &disks {
            let record = disk.record.as_ref();
            let device = record.map_or_else(String::new, |r| r.device.display().to_string());
            let mounted = record.and_then(|r| r.mountpoint.as_ref());
            let mounted = mounted.map_or_else(String::new, |path| path.display().to_string());
            let line = format!(
                "{:<20} {:<10} {device:<12} {mounted}",
                plain(&disk.name),
                disk.state.name()
            );
            text.push_str(line.trim_end());
            text.push('\n');
        }
        output::print(&text)?;
    }
    Ok(Exit::Fine)
}

/// Shows a disk each second until a signal arrives or the disk is removed.
fn watch(context: &Context, name: &str, json: bool) -> anyhow::Result<Exit> {
    let signals = Signals::listen_on_terminal().context("cannot listen for signals")?;
    let mut before: Option<DiskCounters> = None;
    loop {
        let listing = vdisk::show(&context.dirs, name)?;
        if json {
            output::print_json_line(&versioned(listing_json(&listing)))?;
        } else {
            let counters = listing.counters.as_ref();
            output::print(&format!("{}\n", second(counters, before.as_ref())))?;
        }
        if listing.state != DiskState::Serving {
            context.note(&format!("virtual disk {name} is {}", listing.state.name()));
            return Ok(Exit::Failed);
        }
        before = listing.counters;
        for _ in 0..10 {
            if signals.cancelled() {
                let hangup = signals.which().filter(|_| signals.hung_up());
                return Ok(hangup.map_or(Exit::Fine, Exit::Signal));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Formats the counts since the previous output, or since the start for the first output.
fn second(now: Option<&DiskCounters>, before: Option<&DiskCounters>) -> String {
    let Some(now) = now else { return "no counters".to_owned() };
    let none = DiskCounters::default();
    let before = before.unwrap_or(&none);
    let elapsed = now.elapsed.saturating_sub(before.elapsed).as_secs_f64();
    if elapsed <= 0.0 {
        return "counters restarted".to_owned();
    }
    let requests = now.requests().saturating_sub(before.requests()) as f64 / elapsed;
    let bytes = now.bytes().saturating_sub(before.bytes()).as_mib() / elapsed;
    format!(
        "{requests:>9.0} requests/s {bytes:>9.1} MiB/s  queue {:>3}  lateness p99 {}",
        now.queue, now.lateness.p99
    )
}

/// Describes one disk.
fn page(listing: &DiskListing) -> String {
    let mut lines = vec![
        ("name".to_owned(), plain(&listing.name)),
        ("state".to_owned(), listing.state.name().to_owned()),
    ];
    let mut line = |name: &str, value: String| lines.push((name.to_owned(), value));
    if let Some(record) = &listing.record {
        line("model", plain(&record.words));
        line("device", record.device.display().to_string());
        if let Some(mountpoint) = &record.mountpoint {
            line("mounted", mountpoint.display().to_string());
        }
        line("filesystem", record.filesystem.to_string());
        line("size", record.size.to_string());
        line("dilation", pace(record.dilation));
        line("seed", record.seed.to_string());
        line("server", format!("process {}", record.pid));
    }
    if let Some(counters) = &listing.counters {
        line("counted for", counters.elapsed.to_string());
        line("reads", format!("{} ({})", counters.reads, counters.read_bytes));
        line("writes", format!("{} ({})", counters.writes, counters.written_bytes));
        let mean = counters.queue_mean;
        line(
            "queue",
            format!("{} now, {mean:.1} mean, {} at most", counters.queue, counters.queue_max),
        );
        line("seek share", format!("{:.2}", counters.seek_share()));
        line("cache hits", counters.cache_hits.to_string());
        let late = counters.lateness;
        line("lateness", format!("p50 {}, p99 {}, max {}", late.p50, late.p99, late.max));
        line("memory used", counters.stored.to_string());
    }
    lines.into_iter().map(|(name, value)| format!("{name:<12} {value}\n")).collect()
}

fn remove(context: &Context, names: Vec<String>, all: bool, dry_run: bool) -> anyhow::Result<Exit> {
    let names = match all {
        true => vdisk::list(&context.dirs)?.into_iter().map(|disk| disk.name).collect(),
        false => names,
    };
    if names.is_empty() {
        context.note("no virtual disks to remove");
    }
    let mut first_error = None;
    for name in names {
        match remove_one(context, &name, dry_run) {
            Ok(()) if dry_run => output::print(&format!("would remove {}\n", plain(&name)))?,
            Ok(()) => context.note(&format!("removed {}", plain(&name))),
            Err(error) if first_error.is_none() => first_error = Some(error),
            Err(error) => output::error(&error, context.global.quiet),
        }
    }
    first_error.map_or(Ok(Exit::Fine), Err)
}

/// Removes a disk, unless another foreread process uses it or a device on top of it.
fn remove_one(context: &Context, name: &str, dry_run: bool) -> anyhow::Result<()> {
    let listing = vdisk::show(&context.dirs, name)?;
    let _locks = match locks(context, &listing) {
        // A disk whose server has died is removed even if another process holds its lock.
        Err(TunableError::Busy { .. }) if vdisk::is_dead(&context.dirs, name)? => Vec::new(),
        locks => locks?,
    };
    if !dry_run {
        vdisk::remove(&context.dirs, name)?;
    } else if vdisk::is_held(&context.dirs, name)? {
        return Err(VdiskError::Held { name: name.to_owned() }.into());
    }
    Ok(())
}

/// Locks the device and all devices on top of it.
fn locks(context: &Context, listing: &DiskListing) -> Result<Vec<DeviceLock>, TunableError> {
    let device = listing.record.as_ref().map(|record| record.device.as_path());
    let storage = device.and_then(|device| resolve(&context.root, device).ok());
    let devices = storage.into_iter().flat_map(|storage| storage.devices);
    let bdis = devices.flat_map(|device| bdis_on(&context.root, device));
    bdis.map(|bdi| DeviceLock::acquire(&context.dirs, &bdi)).collect()
}
