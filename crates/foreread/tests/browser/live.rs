//! The pages of `foreread serve`, and a run that grows while its page is open.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::json;
use testkit::browser::BrowserPage;

use super::scratch::Scratch;

/// A running server; killed when dropped.
pub struct Served(Child, pub String);

impl Served {
    pub fn start(scratch: &Scratch, options: &[&str]) -> Self {
        let mut child = scratch
            .command()
            .args(["serve", "--port", "0"])
            .args(options)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_whitespace().next().unwrap().to_owned();
        assert!(address.starts_with("http://127.0.0.1:"), "{line}");
        Self(child, address)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn ready(page: &mut BrowserPage<'_>, address: &str) {
    page.open(address).unwrap();
    page.until("document.documentElement.dataset.ready").unwrap();
}

#[test]
fn browser_walks_through_what_is_served() {
    let Some((mut browser, _one)) = super::browser("browser_walks_through_what_is_served") else {
        return;
    };
    let scratch = Scratch::new();
    scratch.published_report();
    let served = Served::start(&scratch, &[]);
    let mut page = browser.page(1280, 900).unwrap();
    ready(&mut page, &served.1);
    assert_eq!(page.eval(super::AUDIT).unwrap(), json!([]));
    let links = page.eval("document.querySelectorAll('tbody th a').length").unwrap();
    assert_eq!(links, json!(2));
    for path in ["/run/2", "/compare/1,2"] {
        ready(&mut page, &format!("{}{path}", served.1));
        super::unfold(&mut page);
        assert_eq!(page.eval(super::AUDIT).unwrap(), json!([]), "{path}");
    }
    let happened = page.happened();
    let complaints: Vec<&String> =
        happened.complaints.iter().filter(|said| !said.contains("favicon")).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
}

#[test]
fn browser_sees_trials_as_they_land() {
    let Some((mut browser, _one)) = super::browser("browser_sees_trials_as_they_land") else {
        return;
    };
    let scratch = Scratch::new();
    let vary = "read_ahead=4K,64K,128K,256K,512K,1M,2M,8M";
    let study = ["sweep", "sim:hdd-2008", "--repeats", "60", "-q", "--vary", vary];
    let mut child = scratch
        .command()
        .args(study)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let served = Served::start(&scratch, &[]);
    let mut page = browser.page(1280, 900).unwrap();
    let address = format!("{}/run/1", served.1);
    // The run appears as soon as its study has started.
    for _ in 0..300 {
        page.open(&address).unwrap();
        if page.eval("Boolean(document.getElementById('data'))").unwrap() == json!(true) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    page.until("document.documentElement.dataset.ready").unwrap();
    let trials =
        "JSON.parse(document.getElementById('data').textContent).runs[0].trials.order.length";
    let first = page.eval(trials).unwrap();
    page.until(&format!("{trials} > {first}")).unwrap();
    let progress = page.eval("document.getElementById('progress').textContent").unwrap();
    assert!(progress.as_str().unwrap().contains("trials so far"), "{progress}");
    let _ = child.kill();
    let _ = child.wait();
}
