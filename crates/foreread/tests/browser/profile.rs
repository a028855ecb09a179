//! The page of a profile.

use observe::InodeId;
use profile::{
    AccessKind, FileAccess, Frame, IoRequest, ModelChoice, PageEviction, ProfileRecording,
    ProfiledFile, StackTrace, StorageWait, SubmittedPages, ThreadAccount, WaitClass, analyse,
};
use serde_json::json;
use testkit::browser::Theme;
use units::{Bytes, Nanos};

use super::scratch::Scratch;
use super::{AUDIT, browser, is_clean, nameless, number, open, picture};

const DEVICE: host::DevNo = host::DevNo { major: 7, minor: 1 };
const HOSTILE: &str = "/data/</script><script>document.hacked=1</script>";

/// Two passes over a file that is dropped from the cache in between; each block has a wait.
fn recording() -> ProfileRecording {
    let mut recording = ProfileRecording { target: HOSTILE.to_owned(), ..Default::default() };
    let id = InodeId { device: DEVICE, inode: 42 };
    let (path, size) = (HOSTILE.to_owned(), Bytes::from_mib(8));
    recording.files.push(ProfiledFile { id, path, size, start: None, jumps: Vec::new() });
    recording.devices.insert(DEVICE, "sda".to_owned());
    let frame = |function: &str, line| Frame {
        function: function.to_owned(),
        module: "/bin/reader".to_owned(),
        source: Some(("src/main.c".to_owned(), line)),
    };
    let kernel = vec![Frame { function: "filemap_read".to_owned(), ..Frame::default() }];
    let user = vec![frame("read_block", 20), frame("main", 42)];
    recording.stacks.push(StackTrace { kernel, user });
    recording.taken = 1000;
    let mut now = Nanos::ZERO;
    for pass in 0..2 {
        for block in 0..64_u64 {
            let (offset, length) = (Bytes::from_kib(128 * block), Bytes::from_kib(128));
            let (start, blocked) = (now, Nanos::from_millis(2));
            now += Nanos::from_millis(3);
            recording.submitted.push(SubmittedPages {
                at: start,
                tid: 1,
                inode: 0,
                offset,
                length,
                is_window: true,
            });
            recording.waits.push(StorageWait {
                end: start + blocked,
                blocked,
                tid: 1,
                pid: 1,
                stack: 0,
                class: WaitClass::Miss,
                inode: Some(0),
                file: 7,
                offset,
            });
            recording.requests.push(IoRequest {
                end: start + blocked,
                service: blocked,
                device: DEVICE,
                sector: offset.get() / 512,
                length,
                depth: 1,
                is_read: true,
                queued: Nanos::ZERO,
                neighbour: None,
            });
            recording.accesses.push(FileAccess {
                start,
                end: now,
                tid: 1,
                file: 7,
                inode: 0,
                offset,
                length,
                blocked,
                kind: AccessKind::Read,
                misses: 1,
                marks: 0,
                submitted: length,
                largest_window: length,
                window_limit: length,
                is_random: false,
                is_direct: false,
                only_mapped: false,
                calls: 1,
            });
        }
        let (at, offset, length) = (now, Bytes::ZERO, Bytes::from_mib(8));
        let is_advised = true;
        recording.evictions.push(PageEviction { at, inode: 0, offset, length, is_advised });
        now += Nanos::from_millis(20 * (1 - pass));
    }
    recording.wall = now;
    recording.threads.push(ThreadAccount {
        pid: 1,
        tid: 1,
        comm: "reader".to_owned(),
        span: now,
        cpu: Nanos::from_millis(128),
        runnable: Nanos::ZERO,
        blocked: Nanos::from_millis(256),
    });
    recording
}

#[test]
fn browser_the_page_of_a_profile_answers_and_is_legible() {
    let Some((mut browser, _one)) = browser("browser_the_page_of_a_profile_answers_and_is_legible")
    else {
        return;
    };
    let scratch = Scratch::new();
    let recording = recording();
    let analysis = analyse(&recording, &ModelChoice::None, &[]);
    assert_eq!(analysis.diagnoses[0].rule.name, "self-eviction");
    scratch.file("profile.html", &report::profile_html(&recording, &analysis));
    for (theme, name) in [(Theme::Light, "light"), (Theme::Dark, "dark")] {
        for width in [1280, 420] {
            let mut page = browser.page(width, 2400).unwrap();
            page.prefer(theme).unwrap();
            open(&mut page, &scratch.path("profile.html"));
            picture(&mut page, &format!("profile-{name}-{width}"));
            assert_eq!(page.eval(AUDIT).unwrap(), json!([]), "{name} at {width}");
            let wide = number(&mut page, "document.documentElement.scrollWidth - innerWidth");
            assert!(wide < 1.5, "it scrolls sideways at {width}");
            nameless(&mut page);
            let hacked = page.eval("document.hacked === undefined").unwrap();
            assert_eq!(hacked, json!(true));
            is_clean(&mut page);
        }
    }

    let mut page = browser.page(1280, 2400).unwrap();
    open(&mut page, &scratch.path("profile.html"));
    let boxes = "[...document.querySelectorAll('.flame .frame')].map((b) => b.textContent)";
    let shown = page.eval(boxes).unwrap();
    assert_eq!(shown, json!(["reader", "main main.c:42", "read_block main.c:20", HOSTILE]));
    // The second choice adds kernel functions; the first one determines the widths.
    let choose = |nth: usize, value: usize| {
        format!(
            "(() => {{ const s = document.querySelectorAll('#flame-chart select')[{nth}]; \
             s.value = {value}; s.dispatchEvent(new Event('change')); }})()"
        )
    };
    page.eval(&choose(1, 1)).unwrap();
    assert_eq!(page.eval(boxes).unwrap().as_array().unwrap().len(), 5);
    let line = "document.querySelector('#flame-chart p').textContent";
    assert_eq!(page.eval(line).unwrap(), json!("time waited: 256 ms"));
    page.eval(&choose(0, 1)).unwrap();
    assert_eq!(page.eval(line).unwrap(), json!("time saved: 128 ms"));
    page.eval(&choose(0, 2)).unwrap();
    assert_eq!(page.eval(line).unwrap(), json!("bytes read: 16.0 MiB"));
    // The pointer shows details; dragging zooms both charts, and a key resets the zoom.
    page.hover("#offsets-chart canvas", 0.9, 0.5).unwrap();
    let disabled = "document.querySelector('#waterfall-chart .tools button').disabled";
    assert_eq!(page.eval(disabled).unwrap(), json!(true));
    page.drag("#offsets-chart canvas", 0.3, 0.5).unwrap();
    page.until(&format!("!{disabled}")).unwrap();
    page.eval("document.querySelector('#waterfall-chart .timeplot').focus()").unwrap();
    page.press("0").unwrap();
    page.until(disabled).unwrap();
    is_clean(&mut page);
}
