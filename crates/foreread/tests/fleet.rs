//! Many hosts in one database: `foreread fleet` with a PostgreSQL server that the test starts.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may panic, and prints skips

mod database;
mod program;

use std::fs;

use database::Fleet;
use program::{Answer, Scratch, Served, run};
use serde_json::Value;
use testkit::host_tree::HostTree;

#[test]
fn a_second_import_writes_nothing_and_a_change_writes_one_row() {
    let Some(fleet) = Fleet::start() else { return };
    let hosts: Vec<HostTree> = (0..4)
        .map(|number| fleet.host(&format!("web{number}"), number, &[128, 128, 1024]))
        .collect();
    let first = fleet.json("import hosts");
    assert_eq!((&first["surveys"], &first["storage_rows"]), (&4.into(), &12.into()), "{first}");
    let again = fleet.json("import hosts");
    assert_eq!((&again["surveys"], &again["storage_rows"]), (&4.into(), &0.into()), "{again}");
    hosts[2].set_read_ahead(1, 4096).unwrap();
    let changed = fleet.json("import hosts/web2");
    assert_eq!((&changed["surveys"], &changed["storage_rows"]), (&1.into(), &1.into()));
    let changes = &fleet.json("changes")["changes"];
    let change = &changes[0];
    assert_eq!(changes.as_array().unwrap().len(), 1, "{changes}");
    assert_eq!((&change["host"], &change["storage"]), (&"web2".into(), &"/srv/1".into()));
    assert_eq!((&change["before_kib"], &change["read_ahead_kib"]), (&128.into(), &4096.into()));
    let outliers = &fleet.json("outliers")["outliers"];
    assert_eq!(outliers.as_array().unwrap().len(), 1, "{outliers}");
    assert_eq!((&outliers[0]["usual_kib"], &outliers[0]["usual_hosts"]), (&128.into(), &3.into()));
    let one = &fleet.json("hosts --host *2")["hosts"];
    assert_eq!(one.as_array().unwrap().len(), 1);
    assert_eq!((&one[0]["name"], &one[0]["max_read_ahead_kib"]), (&"web2".into(), &4096.into()));
    let none = fleet.json("hosts --host ' --origin tuned".replace('\'', "o'brien").as_str());
    assert_eq!(none["hosts"].as_array().unwrap().len(), 0);
    let (_, table, _) = run(&mut fleet.command("outliers"));
    assert!(table.contains("web2") && table.contains("3 of 4"), "{table}");
    // The host's machine-id does not get into the database.
    assert_eq!(
        fleet.sql("SELECT count(*) FROM foreread.host WHERE host_id::text LIKE '0000%'"),
        "0"
    );
}

#[test]
fn surveys_come_in_any_order_and_a_policy_is_kept_since_when_it_is_violated() {
    let Some(fleet) = Fleet::start() else { return };
    let tree = fleet.host("db", 1, &[128]);
    fs::create_dir(fleet.scratch.path().join("surveys")).unwrap();
    fleet.scratch.file("policy.toml", "version = 1\n[[rule]]\nname = \"all\"\nmax = \"256K\"\n");
    let survey = |file: &str, taken: f64| {
        let words = "survey --root hosts/db --policy policy.toml";
        let (code, out, said) = run(&mut fleet.command(words));
        assert_eq!(code, 0, "{said}");
        let mut survey: Value = serde_json::from_str(&out).unwrap();
        survey["taken_unix_s"] = taken.into();
        fleet.scratch.file(file, survey.to_string());
    };
    survey("surveys/a.json", 1000.0);
    survey("surveys/b.json", 2000.0);
    tree.set_read_ahead(0, 8192).unwrap();
    survey("surveys/c.json", 3000.0);
    let first = fleet.json("import surveys/a.json surveys/c.json");
    assert_eq!((&first["storage_rows"], &first["policy_rows"]), (&2.into(), &2.into()), "{first}");
    // An older survey that arrives later does not change the known history.
    let late = fleet.json("import surveys");
    assert_eq!((&late["surveys"], &late["outdated"]), (&0.into(), &3.into()), "{late}");
    assert_eq!(fleet.json("hosts")["hosts"][0]["violations"], 1);
    let since = "SELECT extract(epoch FROM valid_from)::int FROM foreread.policy_check WHERE \
                 valid_to IS NULL AND jsonb_array_length(violations) = 1";
    assert_eq!(fleet.sql(since), "3000");
}

#[test]
fn runs_are_imported_once_with_their_trials() {
    let Some(fleet) = Fleet::start() else { return };
    fleet.host("lab", 1, &[128]);
    let directory = fleet.scratch.path().join("collected/lab");
    fs::create_dir_all(&directory).unwrap();
    fleet.survey("lab", "collected/lab/survey.json", 1000.0, |_| ());
    let sweep = "sweep sim:nvme --vary read_ahead=4K,128K --workload seq-1 --repeats 2 --duration \
                 50ms --seed 1 --store collected/lab/runs.sqlite";
    let (code, _, said) = fleet.scratch.run(sweep);
    assert!(code == 0 || code == 5, "{said}");
    let first = fleet.json("import collected");
    assert_eq!(first["runs"], 1, "{first}");
    assert!(first["trials"].as_u64().unwrap() >= 4, "{first}");
    let kept = "SELECT (SELECT count(*) FROM foreread.trial WHERE record -> 'figures' IS NOT NULL) \
                = (SELECT count(*) FROM foreread.trial)";
    assert_eq!(fleet.sql(kept), "t");
    let again = fleet.json("import collected");
    assert_eq!((&again["runs"], &again["trials"]), (&0.into(), &0.into()), "{again}");
    compares_runs(&fleet, sweep);
    // A record without a survey belongs to no host.
    fs::remove_file(directory.join("survey.json")).unwrap();
    let (code, out, said) = run(&mut fleet.command("import collected"));
    assert!(code == 1 && said.contains("without a host"), "{out}{said}");
}

/// The page that compares two runs shows the medians of the record.
fn compares_runs(fleet: &Fleet, sweep: &str) {
    let (code, _, said) = fleet.scratch.run(&sweep.replace("--seed 1", "--seed 2"));
    assert!(code == 0 || code == 5, "{said}");
    assert_eq!(fleet.json("import collected")["runs"], 1);
    let runs =
        fleet.sql("SELECT string_agg('run=' || run_uuid, '&' ORDER BY number) FROM foreread.run");
    let served = serve(fleet);
    let list = shown(&served, "/runs");
    assert!(list.contains("sim:nvme") && list.contains("complete"), "{list}");
    let shown = shown(&served, &format!("/compare?{runs}"));
    let median = fleet.sql(
        "SELECT round(percentile_cont(0.5) WITHIN GROUP (ORDER BY (record #>> \
         '{figures,throughput_mib_s}')::float8)::numeric, 1) FROM foreread.trial JOIN foreread.run \
         USING (run_uuid) WHERE run.number = 2 AND record #>> '{settings,read_ahead_kib}' = '128' \
         AND record ->> 'status' = 'clean'",
    );
    assert!(shown.contains(&median) && shown.contains("read_ahead=128K"), "{median}: {shown}");
    assert!(shown.contains("× run 1"), "{shown}");
}

#[test]
fn bad_input_is_one_error_each_and_the_rest_is_imported() {
    let Some(fleet) = Fleet::start() else { return };
    fleet.host("good", 1, &[128]);
    fleet.host("bad", 2, &[128]);
    fleet.host("nameless", 3, &[128]).file("etc/machine-id", "uninitialized\n").unwrap();
    fs::create_dir(fleet.scratch.path().join("in")).unwrap();
    fs::rename(
        fleet.scratch.path().join("hosts/nameless"),
        fleet.scratch.path().join("in/nameless"),
    )
    .unwrap();
    fleet.survey("good", "in/good.json", 1000.0, |_| ());
    fleet.survey("good", "in/renamed.json", 2000.0, |it| it["host"]["name"] = "evil'\u{1b}".into());
    fleet.survey("bad", "in/newer.json", 1000.0, |it| it["survey_version"] = 9.into());
    fleet.survey("bad", "in/future.json", 1e11, |_| ());
    fleet.survey("bad", "in/id.json", 1000.0, |it| it["host"]["id"] = "1'; DROP".into());
    fleet.survey("bad", "in/huge.json", 1000.0, |it| {
        it["storage"][0]["read_ahead_kib"] = (1u64 << 40).into();
    });
    fleet.survey("bad", "in/twice.json", 1000.0, |it| {
        let one = it["storage"][0].clone();
        it["storage"].as_array_mut().unwrap().push(one);
    });
    fleet.scratch.file("in/cut.json", "{\"survey_version\": 1, \"ho");
    fleet.scratch.file("in/other.json", "[]");
    let (code, out, said) = run(&mut fleet.command("import in"));
    let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!((code, errors.len()), (1, 9), "{out}{said}");
    for (file, why) in [
        ("renamed.json", "same machine-id"),
        ("newer.json", "newer foreread"),
        ("future.json", "in the future"),
        ("id.json", "not an identity"),
        ("huge.json", "that large"),
        ("twice.json", "occurs twice"),
        ("cut.json", "not a survey"),
        ("other.json", "not a survey"),
        ("machine-id", "systemd-machine-id-setup"),
    ] {
        let found = errors.iter().any(|error| error.contains(file) && error.contains(why));
        assert!(found, "{file}: {why}: {said}");
    }
    assert!(!said.contains('\u{1b}'), "{said:?}");
    assert!(out.contains("imported: 1 surveys (0 known or outdated, 9 failed)"), "{out}");
    assert_eq!(fleet.sql("SELECT string_agg(name, ',') FROM foreread.host"), "good");
}

#[test]
fn a_database_that_cannot_be_used_is_one_clear_error() {
    let scratch = Scratch::new();
    scratch.file("s.json", "{}");
    let (code, _, said) = scratch.run("fleet hosts");
    assert!(code == 2 && said.contains("--database URL, or FOREREAD_DATABASE"), "{said}");
    let nowhere = "fleet hosts --database postgresql://u:secret@127.0.0.1:1/x";
    let (code, _, said) = scratch.run(nowhere);
    assert!(code == 1 || code == 6, "{said}");
    assert!(!said.contains("secret") && said.lines().count() <= 3, "{said}");
    let (code, _, said) = scratch.run("fleet hosts --database mysql://u:secret@db/x");
    assert!(code == 2 && said.contains("postgresql://") && !said.contains("secret"), "{said}");
    let Some(fleet) = Fleet::start() else { return };
    let (code, _, said) = run(&mut fleet.command("hosts"));
    assert!(code == 1 && said.contains("no host was imported"), "{said}");
    fleet.host("a", 1, &[128]);
    fleet.json("import hosts");
    fleet.sql("UPDATE foreread.version SET number = 7");
    for words in ["hosts", "import hosts"] {
        let (code, _, said) = run(&mut fleet.command(words));
        assert!(code == 1 && said.contains("use the newest foreread"), "{words}: {said}");
    }
}

/// Starts `serve --fleet` with the database.
fn serve(fleet: &Fleet) -> Served {
    let mut command = fleet.scratch.foreread("serve --fleet --port 0");
    command.env("FOREREAD_DATABASE", fleet.server.client().unwrap().connection());
    Served::start(command)
}

/// Returns the text of a page's content, without markup.
fn shown(served: &Served, path: &str) -> String {
    let Answer { status, body, .. } = served.get(path);
    assert_eq!(status, 200, "{path}: {body}");
    let main = body.split("<main").nth(1).unwrap().split("</main>").next().unwrap();
    let pieces = main.split('<').filter_map(|piece| piece.split_once('>'));
    pieces.map(|(_, text)| text.trim()).collect::<Vec<_>>().join(" ")
}

/// Returns the address of the first link to a host of this name.
fn host_address(page: &str, name: &str) -> String {
    let before = page.split(&format!("\">{name}</a>")).next().unwrap();
    before.rsplit("href=\"").next().unwrap().to_owned()
}

#[test]
fn served_pages_show_what_the_database_holds_and_filter_it() {
    let Some(fleet) = Fleet::start() else { return };
    let hosts: Vec<HostTree> =
        (0..60).map(|number| fleet.host(&format!("web{number:02}"), number, &[128, 256])).collect();
    fleet.host("db", 99, &[128, 256, 4096]);
    fleet.json("import hosts");
    hosts[7].set_read_ahead(1, 8192).unwrap();
    fleet.json("import hosts/web07");
    let served = serve(&fleet);
    let first = shown(&served, "/");
    assert!(first.contains("Read-ahead of 61 hosts") && first.contains("Next page"), "{first}");
    assert!(first.contains("db") && !first.contains("web55"), "{first}");
    assert!(shown(&served, "/?page=2").contains("web55"));
    // The page shows what changed, the value before, and the usual value.
    let changed = shown(&served, "/?host=*07");
    assert!(changed.contains("Read-ahead of 1 host"), "{changed}");
    assert!(changed.contains("8192 KiB") && changed.contains("usually 256 KiB"), "{changed}");
    assert!(changed.contains("before: 256 KiB"), "{changed}");
    for (path, has, has_not) in [
        ("/?storage=%2Fsrv%2F2", "db", "web"),
        ("/?origin=tuned", "No host matches", "web"),
        ("/changes", "web07", "web08"),
        ("/changes?host=db", "Nothing changed", "web07"),
        ("/outliers", "60 of 61", "web08"),
        ("/runs", "No run was imported", "web"),
        ("/?host=%27%3B+DROP+TABLE+foreread.host%3B--", "No host matches", "web"),
    ] {
        let shown = shown(&served, path);
        assert!(shown.contains(has) && !shown.contains(has_not), "{path}: {shown}");
    }
    let host = host_address(&served.get("/changes").body, "web07");
    let shown = shown(&served, &host);
    assert!(shown.contains("6.12.0") && shown.contains("wwn:eui.7.1"), "{host}: {shown}");
    let (now, before) = shown.split_once("Before").unwrap();
    assert!(now.contains("8192 KiB") && before.contains("256 KiB"), "{shown}");
    let nobody = "/host/00000000-0000-8000-8000-000000000000";
    for (path, status) in
        [(nobody, 404), ("/host/1", 404), ("/x", 404), ("/?days=x", 400), ("/compare?run=1", 400)]
    {
        assert_eq!(served.get(path).status, status, "{path}");
    }
}

/// Names come from other hosts, and the database may become unavailable.
#[test]
fn served_pages_take_names_as_text_and_report_a_lost_database() {
    let Some(mut fleet) = Fleet::start() else { return };
    fleet.host("evil", 1, &[128]);
    fleet.survey("evil", "s.json", 1000.0, |it| {
        it["host"]["name"] = "<script>alert(1)</script>\u{1b}[2J".into();
        it["storage"][0]["name"] = "\"><img src=x onerror=alert(1)>".into();
        it["storage"][0]["findings"] = serde_json::json!(["<b>"]);
    });
    fleet.json("import s.json");
    let served = serve(&fleet);
    for path in ["/", "/changes", "/outliers", "/runs?host=%3Cscript%3E"] {
        let Answer { status, body: text, .. } = served.get(path);
        let main = text.split("<main").nth(1).unwrap().split("</main>").next().unwrap();
        assert!(status == 200 && !main.contains("<script") && !main.contains("<img"), "{main}");
        assert!(!text.contains('\u{1b}'), "{path}");
    }
    fleet.server.stop().unwrap();
    let Answer { status, body: text, .. } = served.get("/");
    assert!(status == 503 && text.contains("connect"), "{text}");
}

/// Concurrent imports wait for each other.
#[test]
fn imports_at_once_make_the_tables_once() {
    let Some(fleet) = Fleet::start() else { return };
    (0..6).for_each(|number| drop(fleet.host(&format!("h{number}"), number, &[128, 256])));
    let children: Vec<_> = (0..4).map(|_| fleet.command("import hosts").spawn().unwrap()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let rows =
        "SELECT count(*) || ',' || count(DISTINCT (host_id, device_key)) FROM foreread.survey";
    assert_eq!(fleet.sql(rows), "12,12");
}

/// A role that may only read can list hosts, but cannot import.
#[test]
fn a_reader_needs_no_more_than_the_documented_rights() {
    let Some(fleet) = Fleet::start() else { return };
    fleet.host("a", 1, &[128]);
    fleet.json("import hosts");
    let book = include_str!("../../../docs/book/fleet.md");
    let grants = book.split("```sql\n").nth(1).unwrap().split("```").next().unwrap();
    fleet.sql(grants);
    let owner = fleet.server.client().unwrap().connection().to_owned();
    let reader = owner.replace("user=foreread", "user=fleet_reader");
    let as_reader = |words: &str| {
        let mut command = fleet.command(words);
        run(command.env("FOREREAD_DATABASE", &reader))
    };
    let (code, out, said) = as_reader("hosts");
    assert!(code == 0 && out.contains("a "), "{out}{said}");
    let (code, _, said) = as_reader("import hosts");
    assert!(code == 1 && said.contains("permission denied"), "{said}");
    let importer = owner.replace("user=foreread", "user=fleet_importer");
    let mut command = fleet.command("import hosts");
    let (code, out, said) = run(command.env("FOREREAD_DATABASE", &importer));
    assert_eq!(code, 0, "{out}{said}");
}
