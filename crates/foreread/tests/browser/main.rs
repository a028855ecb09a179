//! Tests the pages in a browser, without network. Each test prints SKIP if Chromium is not
//! installed.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may panic

mod fleet;
mod large;
mod live;
mod profile;
#[path = "../program/mod.rs"]
mod program;
mod scratch;

use scratch::Scratch;
use serde_json::{Value, json};
use testkit::browser::{self, Browser, BrowserPage, Theme};

const AUDIT: &str = include_str!("audit.js");
/// Elements that are wider than the window.
const STICKS_OUT: &str = "[...document.querySelectorAll('body *')].filter((e) => \
                          e.getBoundingClientRect().right > innerWidth + 1 && \
                          !e.closest('.scroll, .skip, .tip, svg')) \
                          .map((e) => e.outerHTML.slice(0, 99))";
const PUBLISHED: &str = include_str!("../../../study/tests/data/published-tables.json");

/// Starts a browser, or prints why not. One at a time: each takes hundreds of megabytes.
fn browser(test: &str) -> Option<(Browser, std::sync::MutexGuard<'static, ()>)> {
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if browser::program().is_none() {
        println!("SKIP {test}: no Chromium on this machine (apt-get install chromium)");
        return None;
    }
    match Browser::start() {
        Ok(browser) => Some((browser, guard)),
        Err(error) => {
            println!("SKIP {test}: {error}");
            None
        }
    }
}

/// Opens a file as if it had been sent by mail: from disk, without network.
fn open(page: &mut BrowserPage<'_>, file: &std::path::Path) {
    page.go_offline().unwrap();
    page.open(&format!("file://{}", file.display())).unwrap();
    page.until("document.documentElement.dataset.ready").unwrap();
}

/// Draws charts that are not in view yet, and opens closed sections.
fn unfold(page: &mut BrowserPage<'_>) {
    page.eval("document.querySelectorAll('details').forEach((d) => { d.open = true; })").unwrap();
    page.eval("dispatchEvent(new Event('beforeprint'))").unwrap();
    page.until("!document.querySelector('[data-draw]:not([data-drawn])')").unwrap();
}

fn is_clean(page: &mut BrowserPage<'_>) {
    let happened = page.happened();
    assert_eq!(happened.complaints, Vec::<String>::new());
    let out: Vec<&String> =
        happened.requests.iter().filter(|address| !address.starts_with("file://")).collect();
    assert!(out.is_empty(), "the page asked for {out:?}");
}

fn number(page: &mut BrowserPage<'_>, expression: &str) -> f64 {
    let value = page.eval(expression).unwrap();
    value.as_f64().unwrap_or_else(|| panic!("{expression} is {value}"))
}

/// Writes a screenshot to the directory `FOREREAD_PICTURES`, if that variable is set.
fn picture(page: &mut BrowserPage<'_>, name: &str) {
    if let Some(dir) = std::env::var_os("FOREREAD_PICTURES") {
        let file = std::path::Path::new(&dir).join(format!("{name}.png.base64"));
        std::fs::write(file, page.picture().unwrap()).unwrap();
    }
}

#[test]
fn browser_report_answers_to_mouse_and_keyboard_without_network() {
    let Some((mut browser, _one)) =
        browser("browser_report_answers_to_mouse_and_keyboard_without_network")
    else {
        return;
    };
    let scratch = Scratch::new();
    let file = scratch.simulated_report();
    let mut page = browser.page(1280, 900).unwrap();
    open(&mut page, &file);
    assert!(page.eval("document.querySelector('.headline').textContent").unwrap().is_string());

    // A series disappears and reappears.
    page.until("document.querySelector('#curves-0 path.series')").unwrap();
    let lines = "document.querySelectorAll('#curves-0 .chart path.series').length";
    let before = number(&mut page, lines);
    let toggle = "document.querySelector('#curves-0 .legend button').click()";
    page.eval(toggle).unwrap();
    assert!((number(&mut page, lines) - (before - 1.0)).abs() < 0.5);
    page.eval(toggle).unwrap();
    assert!((number(&mut page, lines) - before).abs() < 0.5);

    // The pointer shows figures; so do the arrow keys, which also announce them to screen readers.
    page.hover("#curves-0 .pad svg", 0.5, 0.5).unwrap();
    page.until("!document.querySelector('#curves-0 .tip').hidden").unwrap();
    let tip = page.eval("document.querySelector('#curves-0 .tip').textContent").unwrap();
    assert!(tip.as_str().unwrap().contains("sectors"), "{tip}");
    page.eval("document.querySelector('#curves-0 .pad').focus()").unwrap();
    page.press("Home").unwrap();
    page.press("ArrowRight").unwrap();
    let said = "document.querySelector('#curves-0 .pad').getAttribute('aria-valuetext')";
    let said = page.eval(said).unwrap();
    assert!(said.as_str().unwrap().contains("MiB/s"), "{said}");

    // Dragging zooms in and a button zooms out.
    let stops = "document.querySelectorAll('#curves-0 circle.dot').length";
    let all = number(&mut page, stops);
    page.drag("#curves-0 .pad svg", 0.3, 0.7).unwrap();
    page.until(&format!("{stops} < {all}")).unwrap();
    page.eval("[...document.querySelectorAll('#curves-0 .tools button')].at(-1).click()").unwrap();
    page.until(&format!("{stops} === {all}")).unwrap();

    sorts(&mut page);
    is_clean(&mut page);
}

/// Checks that the heat map sorts by the clicked column, and that trials are sorted and filtered.
fn sorts(page: &mut BrowserPage<'_>) {
    let column = "[...document.querySelectorAll('#heat-0 tbody tr')]\
                  .map((row) => Number(row.cells[2].dataset.v))";
    page.eval("document.querySelectorAll('#heat-0 th button')[1].click()").unwrap();
    let up: Vec<f64> = serde_json::from_value(page.eval(column).unwrap()).unwrap();
    assert!(up.len() > 2 && up.is_sorted(), "{up:?}");
    page.eval("document.querySelectorAll('#heat-0 th button')[1].click()").unwrap();
    let down: Vec<f64> = serde_json::from_value(page.eval(column).unwrap()).unwrap();
    assert!(down.iter().rev().is_sorted(), "{down:?}");

    unfold(page);
    let rows = "document.querySelectorAll('#trials-0 tbody tr').length";
    let all = number(page, rows);
    page.eval(
        "(() => { const i = document.querySelector('#trials-0 input'); i.value = 'seq-8'; \
         i.dispatchEvent(new Event('input')); })()",
    )
    .unwrap();
    let some = number(page, rows);
    assert!(some > 0.0 && some < all, "{some} of {all}");
    let others = "[...document.querySelectorAll('#trials-0 tbody tr')]\
                  .filter((row) => !row.textContent.includes('seq-8')).length";
    assert!(number(page, others) < 0.5);
}

#[test]
fn browser_pages_are_legible_and_accessible_in_both_themes() {
    let Some((mut browser, _one)) =
        browser("browser_pages_are_legible_and_accessible_in_both_themes")
    else {
        return;
    };
    let scratch = Scratch::new();
    let files = [scratch.simulated_report(), scratch.published_report()];
    for (at, file) in files.iter().enumerate() {
        for (theme, name) in [(Theme::Light, "light"), (Theme::Dark, "dark")] {
            for width in [1280, 420] {
                let mut page = browser.page(width, 900).unwrap();
                page.prefer(theme).unwrap();
                open(&mut page, file);
                picture(&mut page, &format!("{name}-{at}-{width}"));
                unfold(&mut page);
                let problems = page.eval(AUDIT).unwrap();
                assert_eq!(problems, json!([]), "{name} {} at {width}", file.display());
                assert_eq!(page.eval(STICKS_OUT).unwrap(), json!([]), "sticks out at {width}");
                nameless(&mut page);
                is_clean(&mut page);
            }
        }
    }
}

/// Checks that every focusable element has a name in the browser's accessibility tree.
fn nameless(page: &mut BrowserPage<'_>) {
    let tree = page.call("Accessibility.getFullAXTree", &json!({})).unwrap();
    for node in tree["nodes"].as_array().unwrap() {
        let properties = node["properties"].as_array().into_iter().flatten();
        let mut focusable = properties.filter(|p| p["name"] == "focusable");
        let role = node["role"]["value"].as_str().unwrap_or_default();
        let name = node["name"]["value"].as_str().unwrap_or_default();
        let whole = matches!(role, "RootWebArea" | "main");
        assert!(focusable.next().is_none() || whole || !name.is_empty(), "no name: {node}");
    }
}

#[test]
fn browser_the_published_tables_become_the_picture_their_author_wanted() {
    let Some((mut browser, _one)) =
        browser("browser_the_published_tables_become_the_picture_their_author_wanted")
    else {
        return;
    };
    let scratch = Scratch::new();
    let file = scratch.published_report();
    let mut page = browser.page(1280, 1400).unwrap();
    open(&mut page, &file);
    page.until("document.querySelector('#together path.series')").unwrap();
    let series = page
        .eval(
            "[...document.querySelectorAll('#together .legend button')].map((b) => b.textContent)",
        )
        .unwrap();
    let wanted = ["ext3: seq-8", "ext3: seq-1", "XFS: seq-8", "XFS: seq-1"];
    assert_eq!(series, json!(wanted), "ext3 and XFS, eight readers and one");
    let rings = number(&mut page, "document.querySelectorAll('#together circle.ring').length");
    assert!(rings >= 6.0, "points of diminishing returns: {rings}");
    let table = page.eval("document.querySelector('#together table').textContent").unwrap();
    assert!(table.as_str().unwrap().contains("8192 KiB (16384 sectors)"), "{table}");
    is_clean(&mut page);
}

#[test]
fn browser_hostile_names_inject_nothing() {
    let Some((mut browser, _one)) = browser("browser_hostile_names_inject_nothing") else {
        return;
    };
    let scratch = Scratch::new();
    let long = "x".repeat(4096);
    let markup = "</script><script>document.hacked=1</script><img src=x onerror=document.hacked=1>";
    let name = format!("{markup}\u{1b}[2J\u{202e}={long}");
    let table = "read_ahead_kib,seq-1,<b onclick=alert(1)>x\n4,10,3\n128,20,4\n1024,30,5\n";
    scratch.file("t.csv", table);
    for _ in 0..2 {
        scratch.foreread(&["import", "t.csv", "--title", &name]);
    }
    scratch.foreread(&["report", "1", "-o", "one.html"]);
    scratch.foreread(&["report", "1", &format!("2={markup}"), "-o", "two.html"]);
    for file in ["one.html", "two.html"] {
        let mut page = browser.page(1280, 900).unwrap();
        open(&mut page, &scratch.path(file));
        unfold(&mut page);
        let found = page.eval(
            "[document.hacked === undefined, document.querySelectorAll('img, b[onclick]').length]",
        );
        assert_eq!(found.unwrap(), json!([true, 0]));
        let wide = number(&mut page, "document.documentElement.scrollWidth - innerWidth");
        assert!(wide < 1.5, "{file} scrolls sideways");
        is_clean(&mut page);
    }
}

#[test]
fn browser_shows_the_figures_of_the_json() {
    let Some((mut browser, _one)) = browser("browser_shows_the_figures_of_the_json") else {
        return;
    };
    let scratch = Scratch::new();
    let file = scratch.simulated_report();
    let text = std::fs::read_to_string(file.with_extension("json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let mut page = browser.page(1280, 900).unwrap();
    open(&mut page, &file);
    let shown = page
        .eval(
            "[...document.querySelectorAll('#heat-0 tbody tr')].map((row) => \
             [...row.cells].filter((c) => c.dataset.v !== undefined) \
             .map((c) => Number(c.dataset.v)))",
        )
        .unwrap();
    let shown: Vec<Vec<f64>> = serde_json::from_value(shown).unwrap();
    let cells = document["cells"].as_array().unwrap();
    assert_eq!(shown.iter().map(|row| row.len() - 1).sum::<usize>(), cells.len());
    for cell in cells {
        let kib = cell["settings"]["read_ahead_kib"].as_f64().unwrap();
        let median = cell["throughput_mib_s"]["median"].as_f64().unwrap();
        let row = shown.iter().find(|row| (row[0] - kib).abs() < 0.5).unwrap();
        assert!(row[1..].iter().any(|v| (v - median).abs() <= median * 1e-12), "{kib} {median}");
    }
}
