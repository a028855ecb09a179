//! Measures how long it takes to import many hosts: the first time, again without a change, and
//! after 10 % have changed; and how long the listings take with a year of changes.
//!
//! `cargo run --release -p foreread-fleet --example hosts [HOSTS]`
#![allow(clippy::print_stdout)] // it has no other results

use std::error::Error;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

use foreread_fleet::{Database, FleetSite, ListingFilter, ListingKind, import};
use pg::{Cluster, RunLimit, Tools};
use report::serve::{PageAddress, Site};
use testkit::host_tree::{HostTree, TreeDisk};

const DISKS_PER_HOST: u32 = 8;
/// Changes of a disk in a year.
const CHANGES_PER_DISK: u32 = 6;

fn main() -> Result<(), Box<dyn Error>> {
    let hosts: u32 = std::env::args().nth(1).map_or(Ok(1000), |word| word.parse())?;
    let directory = tempfile::tempdir()?;
    // The server runs as its own user.
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755))?;
    let trees = directory.path().join("hosts");
    let trees_of = |index: u32| trees.join(format!("host-{index:05}"));
    for index in 0..hosts {
        tree(&trees_of(index), index)?;
    }
    let mut server = Cluster::create(&Tools::find()?, directory.path(), &RunLimit::seconds(60))?;
    server.start(&[])?;
    let client = server.client()?;
    let database = Database::at(client.connection())?;
    let timed = |what: &str| -> Result<(), Box<dyn Error>> {
        let started = Instant::now();
        let report = import(&database, std::slice::from_ref(&trees))?;
        let (seconds, summary) = (started.elapsed().as_secs_f64(), report.summary);
        println!(
            "{what}: {seconds:.1} s, {} surveys, {} storage rows, {} errors",
            summary.surveys,
            summary.storage_rows,
            report.errors.len()
        );
        Ok(())
    };
    timed(&format!("{hosts} hosts of {DISKS_PER_HOST} disks"))?;
    timed("again, unchanged")?;
    for index in (0..hosts).step_by(10) {
        HostTree::open(&trees_of(index)).set_read_ahead(0, 4096)?;
    }
    timed("again, one host in ten changed")?;
    let rows = |sql: &str| client.run(sql, &RunLimit::seconds(600));
    rows(&format!(
        "INSERT INTO foreread.survey SELECT host_id, device_key, now() - (n * 60 + 60) * interval \
         '1 day', now() - n * 60 * interval '1 day', name, 128 * (n + 2), 'udev', '[]' FROM \
         foreread.survey, generate_series(0, {CHANGES_PER_DISK} - 1) AS n WHERE valid_to IS NULL; \
         ANALYZE"
    ))?;
    let size = rows("SELECT pg_size_pretty(pg_database_size(current_database()))")?;
    let count = rows("SELECT count(*) FROM foreread.survey")?;
    println!("with a year of changes: {} rows, {}", count.trim(), size.trim());
    for kind in [ListingKind::Hosts, ListingKind::Changes, ListingKind::Outliers] {
        let filter = ListingFilter { days: 30, limit: 100, ..ListingFilter::default() };
        let mut times: Vec<f64> = Vec::new();
        for _ in 0..20 {
            let started = Instant::now();
            database.list(kind, &filter)?;
            times.push(started.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        println!("{kind:?}: median {:.0} ms, 19th of 20 {:.0} ms", times[10], times[18]);
    }
    serve(FleetSite::new(database))?;
    server.remove()?;
    Ok(())
}

/// Measures how long the pages take.
fn serve(site: FleetSite) -> Result<(), Box<dyn Error>> {
    let mut address = "/".to_owned();
    let mut of_host = None;
    for path in ["/", "/?page=11", "/?host=*99&origin=udev", "/changes", "/outliers", "HOST"] {
        if path == "HOST" {
            address = of_host.take().unwrap_or(address);
        } else {
            path.clone_into(&mut address);
        }
        let mut times: Vec<f64> = Vec::new();
        for _ in 0..20 {
            let started = Instant::now();
            let response = site.page(&PageAddress::new(&address));
            times.push(started.elapsed().as_secs_f64() * 1e3);
            let body = String::from_utf8_lossy(&response.body);
            if response.status != 200 {
                return Err(format!("{address}: {body}").into());
            }
            let link = body.split("href=\"/host/").nth(1).and_then(|rest| rest.split('"').next());
            of_host = link.map(|id| format!("/host/{id}")).or(of_host);
        }
        times.sort_by(f64::total_cmp);
        println!("page {path}: median {:.0} ms, 19th of 20 {:.0} ms", times[10], times[18]);
    }
    Ok(())
}

fn tree(path: &Path, index: u32) -> Result<(), Box<dyn Error>> {
    let mut tree = HostTree::new(path, &format!("host-{index:05}"), &format!("{index:032x}"))?;
    for disk in 0..DISKS_PER_HOST {
        let (mount, wwn) = (format!("/srv/{disk}"), format!("eui.{index:08x}{disk:08x}"));
        tree.disk(&TreeDisk { index: disk, read_ahead_kib: 128, mount: &mount, wwn: &wwn })?;
    }
    Ok(())
}
