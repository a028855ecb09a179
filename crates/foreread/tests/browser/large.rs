//! A large report: how long it takes to open and to respond.
//!
//! It has a thousand trials, because a debug build creates reports slowly, or ten thousand if
//! `FOREREAD_LARGE` is set.

use std::time::Instant;

use super::scratch::Scratch;
use super::{browser, number, open};

/// Returns the number of copies of each trial of a run of a hundred.
fn copies() -> u32 {
    if std::env::var_os("FOREREAD_LARGE").is_some() { 100 } else { 10 }
}

#[test]
fn browser_a_large_report_opens_and_answers() {
    let Some((mut browser, _one)) = browser("browser_a_large_report_opens_and_answers") else {
        return;
    };
    let scratch = Scratch::new();
    scratch.hundred_trials();
    let copies = copies();
    scratch.multiply(copies);
    let begun = Instant::now();
    scratch.foreread(&["report", "1", "-o", "large.html"]);
    let made = begun.elapsed().as_secs_f64();
    let file = scratch.path("large.html");
    let size = std::fs::metadata(&file).unwrap().len();
    let mut page = browser.page(1280, 900).unwrap();
    let begun = Instant::now();
    open(&mut page, &file);
    page.until("document.querySelector('#curves-0 path.series')").unwrap();
    let opened = begun.elapsed().as_secs_f64();
    // Draw everything that can be drawn, then filter, sort and page the largest table.
    let begun = Instant::now();
    super::unfold(&mut page);
    let drawn = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    for step in [
        "document.querySelector('#curves-0 .legend button').click()",
        "document.querySelectorAll('#heat-0 th button')[1].click()",
        "document.querySelectorAll('#trials-0 th button')[4].click()",
        "(() => { const i = document.querySelector('#trials-0 input'); i.value = 'seq-8'; \
         i.dispatchEvent(new Event('input')); })()",
        "[...document.querySelectorAll('#trials-0 .pages button')].at(-1).click()",
    ] {
        page.eval(step).unwrap();
    }
    let answered = begun.elapsed().as_secs_f64();
    println!(
        "{} trials: {:.1} MB made in {made:.2} s, opened in {opened:.2} s, all charts drawn in \
         {drawn:.2} s, five clicks answered in {answered:.2} s",
        copies * 100,
        size as f64 / 1e6
    );
    let said = page.eval("document.querySelector('#trials-0 [aria-live]').textContent").unwrap();
    let (trials, pages) = (copies * 25, copies / 2);
    let expected = format!("{trials} trials, page 2 of {pages}");
    assert!(said.as_str().unwrap().starts_with(&expected), "{said}");
    assert!(number(&mut page, "document.querySelectorAll('#trials-0 tbody tr').length") < 51.0);
    super::is_clean(&mut page);
}
