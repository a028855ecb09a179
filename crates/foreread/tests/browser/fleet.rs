//! The pages of `foreread serve --fleet`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use pg::{Cluster, RunLimit, Tools};
use serde_json::json;
use testkit::browser::Theme;
use testkit::host_tree::{HostTree, TreeDisk};

use super::live::{Served, ready};
use super::scratch::Scratch;

#[test]
fn browser_reads_and_filters_the_pages_of_a_fleet() {
    let name = "browser_reads_and_filters_the_pages_of_a_fleet";
    let Some((mut browser, _one)) = super::browser(name) else { return };
    let tools = match Tools::find() {
        Ok(tools) => tools,
        Err(error) => return println!("SKIP {name}: {error}"),
    };
    let scratch = Scratch::new();
    // The server may run as a user of its own.
    fs::set_permissions(scratch.path("."), Permissions::from_mode(0o755)).unwrap();
    let limit = RunLimit::seconds(120);
    let mut server = Cluster::create(&tools, &scratch.path("."), &limit).unwrap();
    server.start(&[]).unwrap();
    let database = server.client().unwrap().connection().to_owned();
    let import = || scratch.foreread(&["fleet", "import", "hosts", "--database", &database]);
    let hosts: Vec<HostTree> = (0..12).map(|number| host(&scratch, number)).collect();
    import();
    hosts[3].set_read_ahead(1, 8192).unwrap();
    hosts[5].set_read_ahead(0, 0).unwrap();
    import();
    let served = Served::start(&scratch, &["--fleet", &database]);
    let pages = ["/", "/changes", "/outliers", "/runs"];
    for (theme, name) in [(Theme::Light, "light"), (Theme::Dark, "dark")] {
        for width in [1280, 420] {
            let mut page = browser.page(width, 900).unwrap();
            page.prefer(theme).unwrap();
            for (index, path) in pages.iter().enumerate() {
                ready(&mut page, &format!("{}{path}", served.1));
                super::picture(&mut page, &format!("fleet-{name}-{index}-{width}"));
                assert_eq!(page.eval(super::AUDIT).unwrap(), json!([]), "{path} {name} {width}");
                assert_eq!(page.eval(super::STICKS_OUT).unwrap(), json!([]), "{path} {width}");
                super::nameless(&mut page);
            }
        }
    }
    // A form changes the address, and a link leads to the host.
    let mut page = browser.page(1280, 900).unwrap();
    ready(&mut page, &served.1);
    page.eval("document.querySelector('input[name=host]').value = '*03'").unwrap();
    page.eval("document.querySelector('form button').click()").unwrap();
    page.until("location.search.includes('host=*03') && document.querySelector('td.changed')")
        .unwrap();
    assert_eq!(page.eval("document.querySelectorAll('tbody tr').length").unwrap(), json!(1));
    page.eval("document.querySelector('tbody th a').click()").unwrap();
    page.until("location.pathname.startsWith('/host/') && document.documentElement.dataset.ready")
        .unwrap();
    super::picture(&mut page, "fleet-host");
    assert_eq!(page.eval(super::AUDIT).unwrap(), json!([]));
    let happened = page.happened();
    let complaints: Vec<&String> =
        happened.complaints.iter().filter(|said| !said.contains("favicon")).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    drop(served);
    server.remove().unwrap();
}

fn host(scratch: &Scratch, number: u32) -> HostTree {
    let (name, id) = (format!("web{number:02}"), format!("{number:032x}"));
    let mut tree = HostTree::new(&scratch.path("hosts").join(&name), &name, &id).unwrap();
    for (index, mount) in (0..).zip(["/", "/srv/db", "/srv/log", "/var/lib/containers/storage"]) {
        let wwn = format!("eui.{number:x}.{index:x}");
        tree.disk(&TreeDisk { index, read_ahead_kib: 128, mount, wwn: &wwn }).unwrap();
    }
    tree
}
