//! `accel report` as a user runs it, on the fixed run of `golden/run.json` and on documents that make no sense. To accept
//! a wanted change of a golden file, run with ACCEL_UPDATE_GOLDEN=1 and read the difference.

use accel::import;
use accel::render::view::View;
use accel::render::{csv, flent, html, markdown, prom, text};
use accel::run::{Arm, Phase, Run, SampleColumns};
use scraper::{ElementRef, Html, Selector};
use serde_json::{Value, json};
use std::io::{BufReader, Cursor};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn golden_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn golden(name: &str, got: &str) {
    if std::env::var_os("ACCEL_UPDATE_GOLDEN").is_some() {
        std::fs::write(golden_path(name), got).unwrap();
    }
    let expected = std::fs::read_to_string(golden_path(name)).unwrap();
    let differs = expected.lines().zip(got.lines()).position(|(old, new)| old != new);
    assert!(expected == got, "{name} changed, first in line {:?}", differs.map(|line| line + 1));
}

fn fixed_run() -> Run {
    serde_json::from_str(&std::fs::read_to_string(golden_path("run.json")).unwrap()).unwrap()
}

fn page_of(run: &Run) -> String {
    html::render(&[View::from(run)]).unwrap()
}

fn select<'a>(page: &'a Html, selector: &str) -> Vec<ElementRef<'a>> {
    page.select(&Selector::parse(selector).unwrap()).collect()
}

fn count(element: ElementRef<'_>, selector: &str) -> usize {
    element.select(&Selector::parse(selector).unwrap()).count()
}

#[test]
fn the_views_of_a_fixed_run_byte_for_byte() {
    let run = fixed_run();
    let view = View::from(&run);
    golden("report.html", &page_of(&run));
    golden("report.md", &markdown::render(std::slice::from_ref(&view)));
    golden("report.prom", &prom::render(&view));
}

#[test]
fn the_page_asks_no_network_and_runs_nothing() {
    let page = Html::parse_document(&page_of(&fixed_run()));
    assert!(page.errors.is_empty(), "{:?}", page.errors);
    assert_eq!(select(&page, "script, iframe, object, embed, img, form, base, [src], [onload]").len(), 0);
    for link in select(&page, "[href]") {
        let target = link.attr("href").unwrap();
        assert!(target.starts_with('#') || target == "data:,", "{target}");
    }
    for style in select(&page, "style") {
        let text: String = style.text().collect();
        assert!(!text.contains("url(") && !text.contains("@import"), "{text}");
    }
}

#[test]
fn every_plot_has_words_and_every_table_has_headers() {
    let run = fixed_run();
    let page = Html::parse_document(&page_of(&run));
    let figures = select(&page, "figure");
    // Difference, a timeline for each arm, a CDF for each phase, a histogram for each phase and arm.
    assert_eq!(figures.len(), 1 + 2 + 4 + 8);
    for figure in figures {
        assert_eq!(count(figure, "div[role=img][aria-label] > svg[viewBox]"), 1);
        let words = figure.select(&Selector::parse("[role=img]").unwrap()).next().unwrap().attr("aria-label");
        assert!(words.unwrap().len() > 40, "{words:?}");
        assert!(!words.unwrap().contains("NaN") && !words.unwrap().contains("inf"), "{words:?}");
        assert_eq!(count(figure, "h3, figcaption"), 2);
    }
    assert_eq!(select(&page, "svg").len(), 15, "no plot outside a figure");
    for table in select(&page, "table") {
        assert_eq!(count(table, "caption"), 1);
        let columns = count(table, "thead th[scope=col]");
        for row in table.select(&Selector::parse("tbody tr").unwrap()) {
            assert_eq!(count(row, "th[scope=row]"), 1);
            assert_eq!(count(row, "th, td"), columns);
        }
    }
    assert_eq!(select(&page, "html[lang=en], meta[name=viewport], main, h1, title").len(), 5);
    assert_eq!(
        select(&page, ".scroll[tabindex='0'][role=region][aria-label]").len(),
        select(&page, "table").len()
    );
}

#[test]
fn the_page_says_what_the_run_says() {
    let run = fixed_run();
    let page = Html::parse_document(&page_of(&run));
    let text: String = page.root_element().text().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&run.verdict.as_ref().unwrap().sentence));
    for said in ["a made-up run", "Cost, shaper off to on", "probe_period_ms", "seed", "no upper limit"] {
        assert!(text.contains(said), "{said}");
    }
    let rows = select(&page, "#results ~ section table");
    let cells: Vec<String> = rows[0]
        .select(&Selector::parse("tbody tr:nth-child(2) > *").unwrap())
        .map(|cell| cell.text().collect())
        .collect();
    assert_eq!(cells[..3], ["upload", "shaper off", "28"]);
    assert!(cells[3].contains("420.8"), "{cells:?}");
}

#[test]
fn every_colour_of_the_plots_has_one_for_dark_screens() {
    let text = page_of(&fixed_run());
    let page = Html::parse_document(&text);
    for attribute in ["fill", "stroke"] {
        for element in select(&page, &format!("svg [{attribute}]")) {
            let colour = element.attr(attribute).unwrap();
            let rule = format!("svg [{attribute}=\"{colour}\"]");
            assert!(
                colour == "none" || text.contains(&rule),
                "{attribute} {colour} stays as it is in the dark"
            );
        }
    }
}

#[test]
fn names_from_a_document_never_become_markup() {
    let mut run = fixed_run();
    run.settings.congestion_control = "</style><script>alert(1)</script>".to_owned();
    run.warnings = vec!["<img src=x onerror=alert(1)>".to_owned()];
    run.command = "\"><svg onload=alert(1)>".to_owned();
    let page = Html::parse_document(&page_of(&run));
    assert_eq!(select(&page, "script, img, [onload], [onerror]").len(), 0);
    assert_eq!(select(&page, "svg").len(), 15);
}

/// As many samples as a default run has, each somewhere else: nothing can share a mark by chance.
fn scattered(n: usize) -> SampleColumns {
    let ms = |i: usize| 20.0 * (1.0 + 25.0 * (i as f64 * 0.618_033_988_749_895).fract());
    SampleColumns {
        t_ms: (0..n).map(|i| 7_000.0 * i as f64 / n as f64).collect(),
        kernel_ms: (0..n).map(|i| Some(ms(i))).collect(),
        user_ms: (0..n).map(|i| Some(ms(i) + 0.05)).collect(),
        retransmits: vec![0; n],
    }
}

#[test]
fn the_page_of_a_default_run_is_small_and_that_of_a_huge_one_bounded() {
    for n in [750, 50_000] {
        let mut run = fixed_run();
        run.phases.iter_mut().for_each(|phase| phase.samples = scattered(n));
        let page = page_of(&run);
        assert!(page.len() < 1_500_000, "{} bytes for {n} samples a phase", page.len());
        assert!(page.contains(&format!("marks for {} probes", 4 * n)));
    }
}

#[test]
fn empty_and_odd_runs_are_drawn() {
    let mut run = fixed_run();
    run.phases[0].samples = SampleColumns::default();
    run.phases[1].samples.user_ms.fill(None);
    run.phases[2].samples.user_ms.fill(Some(0.0));
    run.phases[2].samples.kernel_ms.fill(Some(0.0));
    run.phases[3].measured_ms = 0.0;
    let page = page_of(&run);
    assert!(!page.contains("NaN") && !page.contains("inf\""));
    run.phases.clear();
    run.verdict = None;
    assert!(page_of(&run).contains("No phase was measured"));
}

#[test]
fn csv_and_flent_are_read_back_with_every_probe() {
    let run = fixed_run();
    let view = View::from(&run);
    let read = |bytes: Vec<u8>| import::read(BufReader::new(Cursor::new(bytes))).unwrap().series;
    // The phases of the fixed run overlap in time, which no reader takes; one of them is a table of its own.
    let mut single = run.clone();
    single.phases.retain(|phase| phase.phase == Phase::Upload && phase.arm == Arm::Off);
    let table = read(csv::render(&[View::from(&single)]).into_bytes());
    assert_eq!(table[0].columns.len(), single.phases[0].samples.t_ms.len());
    assert_eq!(table[0].columns.retransmitted(), Some(2));
    let upload = &view.tracks[1];
    let series = read(flent::render(&view, upload).unwrap());
    assert_eq!(series.len(), 1);
    let columns = &series[0].columns;
    assert_eq!(columns.len(), upload.samples.t_ms.len(), "the lost probe is a hole in the numbers");
    assert_eq!(columns.rtt_ms().iter().filter(|rtt| rtt.is_infinite()).count(), 1);
    let largest = columns.rtt_ms().iter().copied().filter(|rtt| rtt.is_finite()).fold(0.0, f64::max);
    assert_eq!(largest, 1_433.25, "with its waiting");
}

/// A folder for the files of one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("accel-report-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn file(&self, name: &str, content: &[u8]) -> String {
        std::fs::write(self.0.join(name), content).unwrap();
        self.path(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn accel(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_accel")).args(arguments).output().unwrap()
}

#[test]
fn every_file_that_was_asked_for_is_written_and_said() {
    let folder = Folder::new("all");
    let run = golden_path("run.json");
    let (page, table, flent, metrics) =
        (folder.path("a.html"), folder.path("a.csv"), folder.path("a.flent.gz"), folder.path("a.prom"));
    let output = accel(&[
        "report",
        run.to_str().unwrap(),
        "--html",
        &page,
        "--csv",
        &table,
        "--flent",
        &flent,
        "--prom",
        &metrics,
    ]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said.lines().count(), 1 + 1 + 8 + 1, "{said}");
    let written = said.lines().map(|line| line.split_whitespace().nth(1).unwrap());
    assert!(written.clone().all(|path| Path::new(path).exists()), "{said}");
    let files = std::fs::read_dir(&folder.0).unwrap().count();
    assert_eq!(files, 11, "nothing else is left");
    let csv = std::fs::read_to_string(table).unwrap();
    assert!(csv.starts_with("run,phase,arm,t_s,rtt_ms,retransmits,kernel_ms,user_ms\n"));
    let samples: usize = fixed_run().phases.iter().map(|phase| phase.samples.t_ms.len()).sum();
    assert_eq!(csv.lines().count(), 1 + samples);
}

#[test]
fn without_options_the_table_is_printed_as_the_run_printed_it() {
    let output = accel(&["report", golden_path("run.json").to_str().unwrap()]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, text::render(&fixed_run(), text::Style { width: 80, colour: false }));
}

/// The document with one value replaced.
fn with(pointer: &str, value: Value) -> Vec<u8> {
    let mut document: Value =
        serde_json::from_str(&std::fs::read_to_string(golden_path("run.json")).unwrap()).unwrap();
    *document.pointer_mut(pointer).unwrap() = value;
    document.to_string().into_bytes()
}

#[test]
fn a_bad_document_ends_in_one_line_and_its_exit_code() {
    let whole = std::fs::read(golden_path("run.json")).unwrap();
    let n = fixed_run().phases[0].samples.t_ms.len();
    let cases: [(&str, Vec<u8>, i32, &str); 12] = [
        ("empty", Vec::new(), 6, "empty"),
        ("cut", whole[..whole.len() / 2].to_vec(), 6, "cut"),
        ("corrupt", [b"{\"schema_version\":1,,", whole.as_slice()].concat(), 6, "not understood"),
        ("cut-gzip", vec![0x1F, 0x8B, 8, 0], 6, ""),
        ("future", with("/schema_version", json!(999)), 6, "schema 999"),
        ("other", b"{\"t_ms\":[1],\"rtt_ms\":[2]}".to_vec(), 6, "no run document"),
        ("command", with("/command", json!("unheard-of")), 6, "unheard-of"),
        ("null", with("/phases/0/measured_ms", Value::Null), 6, "not understood"),
        ("negative", with("/phases/0/samples/user_ms/3", json!(-1.0)), 7, "latency of -1 ms"),
        ("unsorted", with("/phases/0/samples/t_ms/3", json!(1.0)), 7, "not in time order"),
        ("twice", with("/phases/0/samples/t_ms/3", json!(25.0)), 7, "duplicate"),
        ("columns", with("/phases/0/samples/t_ms", json!(vec![1.0; n - 1])), 7, "different length"),
    ];
    let folder = Folder::new("bad");
    for (name, content, exit, said) in cases {
        let page = folder.path("page.html");
        let output = accel(&["report", &folder.file(name, &content), "--html", &page]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(exit), "{name}: {text}");
        assert!(text.contains(said) && text.contains(name), "{name}: {text}");
        let lines = text.lines().filter(|line| !line.starts_with("help: ")).count();
        assert_eq!(lines, 1, "{name}: {text}");
        assert!(!Path::new(&page).exists(), "{name}");
    }
    let missing = accel(&["report", &folder.path("nowhere")]);
    assert_eq!(missing.status.code(), Some(6));
}

#[test]
fn what_cannot_be_written_is_said() {
    let run = golden_path("run.json");
    let run = run.to_str().unwrap();
    let output = accel(&["report", run, "--html", "/nonexistent/page.html"]);
    assert_eq!(output.status.code(), Some(4));
    let full = accel(&["report", run, "--csv", "/dev/full"]);
    assert_eq!(full.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&full.stderr).contains("No space left"));
    assert_eq!(accel(&["report", run, run, "--prom", "x.prom"]).status.code(), Some(2));
}

#[test]
fn a_measurement_is_shown_in_every_view() {
    let folder = Folder::new("measure");
    let (page, table, metrics) = (folder.path("m.html"), folder.path("m.csv"), folder.path("m.prom"));
    let run = golden_path("measurement.json");
    let run = run.to_str().unwrap();
    let output = accel(&["report", run, "--html", &page, "--csv", &table, "--prom", &metrics, "--markdown"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let markdown = String::from_utf8(output.stdout).unwrap();
    assert!(markdown.starts_with("## accel measure\n") && markdown.contains("| idle "), "{markdown}");
    let page = Html::parse_document(&std::fs::read_to_string(page).unwrap());
    assert!(page.errors.is_empty(), "{:?}", page.errors);
    let document: Value = serde_json::from_slice(&std::fs::read(run).unwrap()).unwrap();
    let tracks: usize = document["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|phase| phase["rows"].as_array().unwrap().len())
        .sum();
    let results = &select(&page, "#results ~ section table")[0];
    assert_eq!(count(*results, "tbody tr"), tracks);
    assert!(std::fs::read_to_string(table).unwrap().starts_with("run,phase,target,probe,t_s,rtt_ms,"));
    assert!(std::fs::read_to_string(metrics).unwrap().contains("probe=\"handshake\",percentile=\"99\""));
}

#[test]
fn history_keeps_each_run_once_and_shows_the_trend() {
    let folder = Folder::new("history");
    let kept = folder.path("kept");
    let list = |more: &[&str]| accel(&[&["history", "--folder", kept.as_str()], more].concat());
    let empty = list(&[]);
    assert!(empty.status.success() && String::from_utf8_lossy(&empty.stdout).contains("No run is kept"));
    let first = golden_path("run.json");
    let first = first.to_str().unwrap();
    let later = folder.file("later.json", &with("/started_unix_ms", json!(1_767_312_000_000_u64)));
    let output = list(&[first, first, later.as_str()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(std::fs::read_dir(&kept).unwrap().count(), 2);
    let said = String::from_utf8(list(&["--phase", "idle"]).stdout).unwrap();
    assert!(said.contains("idle, 2 runs"), "{said}");
    assert!(said.contains("2026-01-01 00:00") && said.contains("2026-01-02 00:00"), "{said}");
    assert_eq!(said.matches("no difference shown").count(), 2, "the same samples in both arms: {said}");
    std::fs::write(Path::new(&kept).join("bad.json"), "{").unwrap();
    let output = list(&[]);
    assert_eq!(output.status.code(), Some(6));
    assert!(String::from_utf8_lossy(&output.stdout).contains("2 runs"), "the good ones are still shown");
    assert!(String::from_utf8_lossy(&output.stderr).contains("bad.json"));
}
