//! What a page promises: one file, small, inert, complete, the same every time.

#![allow(clippy::unwrap_used, reason = "a test")]

use iosched_report::{Input, Options, html};
use iosched_results::published;

use crate::synthetic;

fn page_of(records: &[iosched_experiment::Record]) -> String {
    html(&Input::from_records(Options { title: "t".into(), ..Options::default() }, records))
}

#[test]
fn twenty_workloads_by_eight_schedulers_stay_small_and_load_nothing() {
    let records = synthetic::records(20, 8, 5);
    let page = page_of(&records);
    // The limit is 1.7 MB; this leaves room for names that are longer than these.
    assert!(page.len() < 1_650_000, "{} bytes", page.len());
    // A namespace is a name, not an address.
    let links = page.replace("http://www.w3.org/2000/svg", "");
    for remote in ["http:", "https:", "//cdn", "@import", "url("] {
        assert!(!links.contains(remote), "{remote}");
    }
    assert_eq!(page, page_of(&records));
    // The failed cell is shown with its reason, in its chart and in the list.
    assert!(page.matches("the device vanished").count() >= 3);
    assert!(page.contains("<td class=\"v\">&gt;&#8239;60.0<span> s"), "the censored start-up time");
}

#[test]
fn hostile_names_stay_text() {
    let records = synthetic::hostile();
    let options = Options { title: synthetic::HOSTILE.into(), ..Options::default() };
    let page = html(&Input::from_records(options, &records));
    assert_eq!(page.matches("<script").count(), 2, "the data and the script");
    assert_eq!(page.matches("</script").count(), 2);
    assert_eq!(page.matches("<img").count(), 0);
    assert!(page.contains("{{7*7}}"), "template syntax in a name is not run");
    assert!(page.contains("&lt;script&gt;"));
    assert!(!page.contains('\u{202e}'), "a name turns no text around");
}

#[test]
fn the_published_means_are_the_reference_viewers() {
    let page = |n| page_of(&published::records(n).unwrap());
    let old = page("linux-3.12");
    for mean in ["148.7", "150", "148.7"] {
        assert!(old.contains(&format!("<td>{mean}</td>")), "{mean}");
    }
    let new = page("linux-4.12");
    for text in ["173.8", "187.3", "93.32", "599.5", "414.6"] {
        assert!(new.contains(&format!("<td>{text}</td>")), "{text}");
    }
    assert!(new.contains("106.6 MB&#x2f;s"), "the harmonic mean of SSD BFQ");
    assert!(new.contains("One value of each proves nothing") && new.contains("not testable"));
}

#[test]
fn no_records_are_still_a_page() {
    let page = page_of(&[]);
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
}

#[test]
fn the_same_run_is_counted_once() {
    // fio printed MB/s and IOPS of the same run.
    let page = page_of(&published::records("linux-4.12").unwrap());
    let rows = |text: &str| page.matches(&format!(">{text}</a></th>")).count();
    assert_eq!((rows("Sequential Read"), rows("Sequential Write")), (1, 1));
    assert!(!page.contains("<span> IOPS</span>"), "a strip in the other unit");
}

#[test]
fn a_strip_has_the_scale_of_its_device() {
    let mut records = synthetic::records(2, 3, 3);
    let mut slow = records.clone();
    for r in &mut slow {
        r.trial.device = "slow".into();
        for j in &mut r.jobs {
            j.runtime *= 500;
            j.read.runtime *= 500;
        }
    }
    records.extend(slow);
    let page = page_of(&records);
    let strips: Vec<&str> = page.split("<table class=\"strip\">").skip(1).collect();
    let widest = |s: &str| {
        let widths =
            s.split("<s style=\"width:").skip(1).filter_map(|w| w.split('%').next()?.parse().ok());
        widths.fold(0.0, f64::max)
    };
    assert!(strips.len() >= 4);
    for s in &strips {
        let one = s.split("</table>").next().unwrap();
        assert!(widest(one) > 50.0, "a bar of {} %", widest(one));
    }
}

/// Of three devices the third stands below, where no head names it.
#[test]
fn every_device_has_its_name_beside_its_bars() {
    let mut records = synthetic::records(1, 2, 3);
    for device in ["second", "third"] {
        let mut more = synthetic::records(1, 2, 3);
        more.iter_mut().for_each(|r| r.trial.device = device.into());
        records.extend(more);
    }
    let page = page_of(&records);
    assert!(page.contains("class=\"pair many\""));
    assert!(page.contains("<div class=\"one\" data-d=\"third\">"));
}

/// The card counts the lines of the overview, also those of other goals.
#[test]
fn a_card_counts_what_the_overview_shows() {
    let mut records = synthetic::records(1, 2, 5);
    for r in &mut records {
        let of_base = r.trial.scheduler.starts_with("none");
        let jitter = 1.0 + f64::from(r.trial.repetition) * 0.001;
        r.metrics = vec![
            metric("frames", "frames/s", true, if of_base { 10.0 } else { 20.0 } * jitter),
            metric("build", "s", false, if of_base { 10.0 } else { 30.0 } * jitter),
            metric("start", "s", false, if of_base { 10.0 } else { 25.0 } * jitter),
        ];
        r.jobs.clear();
    }
    let page = page_of(&records);
    let at = page.find("measures below it is better than").unwrap();
    let text = &page[at - 12..at + 200];
    assert!(text.contains("Of the 3 ") && text.contains("in 1, worse in 2"), "{text}");
}

fn metric(name: &str, unit: &str, higher: bool, value: f64) -> iosched_experiment::Metric {
    iosched_experiment::Metric {
        name: name.into(),
        value,
        unit: unit.into(),
        higher_is_better: Some(higher),
        censored: false,
    }
}

#[test]
fn a_partial_experiment_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = iosched_results::store::Store::open(&dir.path().join("r.db")).unwrap();
    let id = store.begin("night", "", "run").unwrap();
    let records = synthetic::records(2, 2, 3);
    store.put_all(id, records.iter().map(|r| (r, ""))).unwrap();
    let of = |store: &iosched_results::store::Store| {
        html(&Input::from_store(Options::default(), store, id).unwrap())
    };
    assert!(!of(&store).contains("id=\"progress\""));
    store.expect(id, 80).unwrap();
    let words = format!("{} of 80 trials: interrupted", records.len());
    assert!(of(&store).contains(&words));
}

#[test]
fn equal_figures_are_one_line() {
    let mut records = synthetic::records(1, 3, 4);
    for i in 0..records.len() {
        if records[i].trial.scheduler.starts_with("kyber") {
            let like = records.iter().find(|o| {
                o.trial.scheduler.starts_with("none")
                    && o.trial.repetition == records[i].trial.repetition
            });
            let like = like.unwrap().clone();
            let id = records[i].trial.clone();
            records[i] = like;
            records[i].trial = id;
        }
    }
    let page = page_of(&records);
    assert!(page.contains("<th scope=\"row\">none = kyber</th>"), "one line in the strip");
    let cell = page.split("title=\"none&#39;").count();
    assert!(
        cell >= 1 && page.contains(" mrg\"") || page.contains("none = kyber: "),
        "and the reason"
    );
}

/// cfq lived until 4.20, anticipatory until 2.6.32: in one line each has its own end.
#[test]
fn those_that_are_gone_say_until_when_each() {
    let mut records = synthetic::records(1, 2, 2);
    let (kept, other): (Vec<_>, Vec<_>) =
        records.drain(..).partition(|r| r.trial.scheduler.starts_with("none"));
    let under = |name: &str| {
        let mut all = kept.clone();
        for r in &mut all {
            r.trial.scheduler = name.into();
            r.trial.kernel = "6.12".into();
        }
        all
    };
    let page =
        |names: [&str; 2]| page_of(&[other.clone(), under(names[0]), under(names[1])].concat());
    let two = page(["cfq@4.12", "anticipatory@2.6.32"]);
    let words = "cfq <small>until 4.20</small> = anticipatory <small>until 2.6.32</small>";
    assert!(two.contains(words), "{}", line_of(&two, "cfq"));
    let one = page(["cfq@4.12", "deadline@4.12"]);
    assert!(one.contains("cfq = deadline <small>until 4.20</small>"), "{}", line_of(&one, "cfq"));
}

fn line_of(page: &str, name: &str) -> String {
    let row = page.split("<th scope=\"row\">").find(|r| r.contains(name));
    row.unwrap_or_default().chars().take(300).collect()
}

/// Nothing but zeros has a place on its axis.
#[test]
fn a_figure_that_is_zero_everywhere_has_an_axis() {
    let mut records = synthetic::records(1, 2, 2);
    records.iter_mut().for_each(|r| r.metrics = vec![metric("dropped", "frames", false, 0.0)]);
    records.iter_mut().flat_map(|r| &mut r.series).for_each(|s| s.values.fill(0.0));
    let page = page_of(&records);
    assert!(page.contains("dropped") && !page.contains("NaN"));
    assert!(page.contains("<td><div><span style=\"left:0%\">0</span></div></td>"), "nothing but 0");
}

/// A rotating disk and an SSD have other defaults: which value is whose?
#[test]
fn tunables_that_differ_say_on_which_device() {
    let mut records = synthetic::records(1, 2, 1);
    for r in &mut records {
        r.trial.device = "hdd".into();
        r.scheduler.tunables = [("slice_idle".into(), 8), ("quantum".into(), 4)].into();
    }
    let ssd = records.clone().into_iter().map(|mut r| {
        r.trial.device = "ssd".into();
        r.scheduler.tunables.insert("slice_idle".into(), 0);
        r
    });
    let both: Vec<_> = records.clone().into_iter().chain(ssd).collect();
    // The template escapes the stroke.
    let page = page_of(&both).replace("&#x2f;", "/");
    assert!(page.contains("quantum 4, slice_idle 8 (hdd) / 0 (ssd)"));
    assert!(page_of(&records).contains("quantum 4, slice_idle 8<"));
}

#[test]
fn the_page_says_what_the_terminal_says() {
    let records = synthetic::records(3, 4, 5);
    // As people read it: without marks, and a space is a space.
    let marks = (0..9).map(|i| format!("<span data-n=\"{i}\">"));
    let marks =
        marks.chain(["<b>", "</b>", "<span class=\"ci\">", "</span>", "<wbr>"].map(String::from));
    let text = marks.fold(page_of(&records), |t, mark| t.replace(&mark, "")).replace('\u{a0}', " ");
    let mut cells = iosched_results::cells::group(&records);
    iosched_results::cells::one_latency([&mut cells]);
    let all =
        iosched_results::answer::answers(&cells, &iosched_results::answer::candidates_of(&records));
    assert!(!all.is_empty());
    for a in all {
        assert!(text.contains(&a.words), "{}", a.words);
    }
}

#[test]
fn the_answer_has_one_meaning_of_each_colour() {
    let mut records = synthetic::records(2, 4, 6);
    for r in &mut records {
        let factor = match r.trial.scheduler.as_str() {
            "mq-deadline@6.12" => 1.5,
            "kyber@6.12" => 0.5,
            _ => 1.0,
        };
        for j in &mut r.jobs {
            // Each scatters in a way of its own: an interval needs that.
            let noise = (r.trial.repetition * 7 + r.trial.scheduler.len() as u32 * 3) % 5;
            j.read.bytes = (1e9 * factor) as u64 + 1_000_000 * u64::from(noise);
            j.write = iosched_experiment::record::DirStats::default();
        }
    }
    let page = page_of(&records);
    let plot = &page[page.find("class=\"goal\"").unwrap()..];
    let plot = &plot[..plot.find("</svg>").unwrap()];
    let ink = |name: &str| {
        let line = &plot[plot.find(&format!(">{name}</text>")).unwrap()..];
        let dot = &line[line.find("<circle").unwrap()..];
        dot[dot.find("var(").unwrap()..].split(')').next().unwrap().to_string()
    };
    assert_eq!(["none", "mq-deadline", "kyber"].map(ink), ["var(--fg0", "var(--fb", "var(--fo"]);
    assert!(plot.contains(">base</text>"), "the base is called so");
    assert!(!page.contains("[+") || page.contains("<span class=\"ci\">[+"), "intervals are quiet");
}

#[test]
fn what_is_alike_is_no_range() {
    let page = page_of(&synthetic::records(1, 3, 2));
    assert!(page.contains(">25,000 seeks") && !page.contains("25,000 to 25,000"));
    assert!(page.contains("idled: of the time"), "and the columns are explained");
}

#[test]
fn the_fold_of_throughput_says_where_each_scheduler_settles() {
    let mut records = synthetic::records(1, 2, 2);
    for r in &mut records {
        let settled = if r.trial.scheduler.starts_with("none") { 2e6 } else { 5e6 };
        let curve = r.series.iter_mut().find(|s| s.name == "throughput").unwrap();
        curve.values = [[1e3, 9e8].repeat(50), vec![settled; 100]].concat();
    }
    assert!(page_of(&records).contains("second half 2.00 MB&#x2f;s to 5.00 MB&#x2f;s"));
}

#[test]
fn a_description_stands_beside_the_title() {
    let comparison = published::load("linux-4.12").unwrap();
    let options = Options {
        title: comparison.title.clone(),
        description: comparison.description.clone(),
        ..Options::default()
    };
    let page = html(&Input::from_records(options, &comparison.to_records()));
    assert!(page.contains("<h1>linux-4.12</h1><p>Seven I&#x2f;O schedulers on an HDD"));
}

#[test]
fn depths_become_lines_and_heat_charts() {
    let mut records = synthetic::records(3, 3, 2);
    for r in &mut records {
        let depth = 1 << r.trial.workload.bytes().last().map_or(0, |b| b - b'0');
        for j in &mut r.jobs {
            j.options = [("rw", "randread".to_string()), ("iodepth", format!("{depth}"))]
                .map(|(k, v)| (k.to_string(), v))
                .into();
        }
    }
    let page = page_of(&records);
    assert!(page.contains("Sweep over depth"), "three depths of one load");
    assert!(page.contains("class=\"dt heat\"") && page.contains("IOPS by depth"));
    records.retain(|r| r.trial.workload != "workload 02");
    assert!(!page_of(&records).contains("Sweep over"), "two points are no line");
}

#[test]
fn a_sweep_over_three_options_has_a_chart_for_each_value_of_the_third() {
    let mut records = synthetic::records(12, 2, 2);
    for r in &mut records {
        let n: u32 = r.trial.workload[9..].parse().unwrap();
        let (depth, jobs, bs) = (1 << (n % 3), 1 + n / 3 % 2, 4096 << (n / 6));
        r.jobs.truncate(1);
        for j in &mut r.jobs {
            let options = [("iodepth", depth), ("numjobs", jobs), ("bs", bs)];
            j.options = options.map(|(k, v)| (k.to_string(), v.to_string())).into();
        }
    }
    let page = page_of(&records);
    assert!(page.contains("Sweep over depth, jobs and block size"));
    for (of, size) in [("IOPS", "4 KiB"), ("IOPS", "8 KiB"), ("latency, mean", "8 KiB")] {
        let head = format!(": {of} by depth, block size {size}</th>");
        assert_eq!(page.matches(&head).count(), 1, "{head}");
    }
}

#[test]
fn a_stored_run_says_how_to_run_it_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = iosched_results::store::Store::open(&dir.path().join("r.db")).unwrap();
    let id = store.begin("night", "name = \"night\"\ndevices = [\"a<b\"]", "run").unwrap();
    let records = synthetic::records(2, 2, 3);
    store.put_all(id, records.iter().map(|r| (r, ""))).unwrap();
    let page = html(&Input::from_store(Options::default(), &store, id).unwrap());
    assert!(page.contains("iosched run again.toml --runs 3"));
    assert!(page.contains("devices = [&quot;a&lt;b&quot;]"));
}

#[test]
fn files_that_the_page_lacks_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = iosched_results::store::Store::open(&dir.path().join("r.db")).unwrap();
    let mut again = |definition: &str| {
        let id = store.begin("night", definition, "run").unwrap();
        store.put_all(id, synthetic::records(1, 2, 3).iter().map(|r| (r, ""))).unwrap();
        let page = html(&Input::from_store(Options::default(), &store, id).unwrap());
        let at = page.find("id=\"again\">").unwrap();
        page[at + 11..at + page[at..].find("</pre>").unwrap()].replace("&#x2f;", "/")
    };
    let text = "devices = [\"my.toml\"]\nschedulers = [\"none\"]\nworkloads = [\"jobs/a.fio\", \"database\"]";
    let said = again(text);
    assert!(said.contains("not in this page: my.toml, jobs/a.fio\n"), "{said}");
    assert!(
        !again("devices = [\"hdd-7200\"]\nschedulers = [\"none\"]\nworkloads = [\"database\"]")
            .contains("not in this page")
    );
    let said = again("run jobs/a.fio --device hdd-7200 --runs 3");
    assert!(said.starts_with("iosched run jobs/a.fio --device hdd-7200 --runs 3\n"), "{said}");
    assert!(
        said.contains("not in this page: jobs/a.fio") && !said.contains("again.toml"),
        "{said}"
    );
}

#[test]
fn a_queue_is_what_waits_and_what_the_device_has() {
    use iosched_experiment::Series;
    let mut records = synthetic::records(1, 2, 1);
    for r in &mut records {
        r.series.retain(|s| s.name != "queue_depth");
        for (name, value) in [("queue_depth", 0.25), ("in_flight", 7.75)] {
            let (name, unit) = (name.to_string(), "requests".to_string());
            r.series.push(Series { name, unit, step: 50_000_000, values: vec![value; 200] });
        }
    }
    let average = |page: &str, title: &str| {
        let figure = &page[page.find(title).unwrap_or_else(|| panic!("no {title}"))..];
        let cell = &figure[figure.find(" data-v=\"").unwrap() + 9..];
        cell[..cell.find('"').unwrap()].to_string()
    };
    assert_eq!(average(&page_of(&records), ": requests waiting or at the device</h4>"), "8.00");
    for r in &mut records {
        r.series.retain(|s| s.name != "in_flight");
    }
    assert_eq!(average(&page_of(&records), ": requests waiting</h4>"), "0.250");
}

#[test]
fn clones_of_a_job_have_its_name_on_the_dispatch_picture() {
    let mut records = synthetic::records(1, 2, 1);
    for r in &mut records {
        // As a job with group_reporting is recorded: one entry for its four processes.
        r.jobs.truncate(1);
        r.jobs[0].options.insert("numjobs".into(), "4".into());
    }
    let page = page_of(&records);
    let fold = &page[page.find("<summary>Dispatch order").unwrap()..];
    let fold = &fold[..fold.find("</details>").unwrap()];
    assert!(fold.contains("reader, 4 processes</span>"), "{}", &fold[..600]);
    assert!(!fold.contains(">other</span>"));
}

#[test]
fn the_course_of_a_program_is_drawn() {
    use iosched_experiment::{EVENT, Mark, MarkKind, OPERATION, Series};
    let mark = |name: &str, kind, began: u64, ended: u64| {
        let (began, ended) = (began * 1_000_000_000, ended * 1_000_000_000);
        Mark { name: name.into(), kind, began, ended }
    };
    let curve = |name: &str, unit: &str, values: &[f64]| Series {
        name: name.into(),
        unit: unit.into(),
        step: 1_000_000_000,
        values: values.to_vec(),
    };
    let mut records = synthetic::records(1, 3, 1);
    let n = records.len() as u64;
    for (i, r) in (0..).zip(&mut records) {
        r.marks = vec![
            mark("write <b>", MarkKind::Phase, 0, 4 + i),
            mark("read", MarkKind::Phase, 4 + i, 9),
            mark("checkpoint", MarkKind::Beside, 2, 3),
            mark("start", MarkKind::Try, 0, 2),
            mark("start", MarkKind::GivenUp, 2, 62 + i),
        ];
        let name = |p: &str, n: &str| format!("{p}{n}");
        r.series.extend([
            curve(&name(OPERATION, "transaction"), "1/s", &[50.0, 70.0, 20.0 + i as f64]),
            curve(&name(OPERATION, "checkpoint"), "1/s", &[0.0, 0.0, 1.0]),
            curve(&name(EVENT, "frame dropped"), "1/s", &[0.0, 3.0, 1.0]),
        ]);
        r.jobs[0].cpu.user = 2_500_000_000;
    }
    let page = page_of(&records);
    let fold = |title: &str| {
        let at = page.find(&format!("<summary>{title}")).unwrap_or_else(|| panic!("no {title}"));
        page[at..at + page[at..].find("</details>").unwrap()].to_string()
    };
    let tries = fold("Tries one by one");
    assert!(tries.contains(&format!("{n} of {} given up", 2 * n)), "{tries}");
    assert_eq!(tries.matches("▷</b>").count() as u64, n, "one beyond its limit a run");
    assert_eq!(tries.matches("<i style").count() as u64, n, "one that ended a run");
    assert!(
        tries.contains("&gt;&#8239;62.0 s"),
        "a median of which only a bound is known: {tries}"
    );
    let phases = fold("Phases");
    assert!(phases.contains("write &lt;b&gt;") && !phases.contains("write <b>"), "{phases}");
    assert!(phases.contains("<td>5.00 s</td>") && phases.contains("from 0 to 9.00 s"), "{phases}");
    assert_eq!(phases.matches("class=\"lane\"").count() as u64, n);
    let course = fold("The program over time");
    assert!(course.contains("transaction; bars on top: checkpoint"), "{course}");
    assert_eq!(course.matches("class=\"band\"").count() as u64, n + 1, "a bar for each curve");
    assert!(course.contains("frame dropped") && !course.contains("checkpoint; bars"), "{course}");
    let cost = fold("Core time beside throughput");
    assert!(cost.contains("<td>25.0 %</td>"), "2.5 s of 10: {cost}");
    // Sensors are something else.
    assert!(!page.contains("<summary>Sensors"));
}

/// Two of five runs of bfq starve the reader; its other runs are quick.
#[test]
fn a_starved_cell_is_marked_and_never_praised() {
    use iosched_experiment::record::{BackendKind, DirStats, JobRecord, Record, TrialId};
    let trial = |scheduler: &str, repetition: u32, reads: u64, ms: u64| {
        let mut read = DirStats { ios: reads, bytes: reads * 4096, ..DirStats::default() };
        read.runtime = 1_000_000_000;
        (1..=reads).for_each(|i| read.lat_hist.record(ms * 1_000_000 - i));
        read.clat = read.lat_hist.clone();
        let trial = TrialId {
            device: "disk".into(),
            workload: "writers".into(),
            scheduler: scheduler.into(),
            kernel: "6.12".into(),
            repetition,
            ..TrialId::default()
        };
        let jobs = vec![JobRecord { name: "a".into(), read, ..JobRecord::default() }];
        Record { trial, jobs, backend: BackendKind::Real, ..Record::default() }
    };
    let mut records = Vec::new();
    for i in 1..=5 {
        records.push(trial("none", i, 200, 70 + u64::from(i)));
        records.push(trial("bfq", i, if i < 4 { 200 } else { 20 }, if i < 4 { 48 } else { 8_000 }));
    }
    let page = page_of(&records);
    let row = page.split("<tr class=\"").find(|r| r.contains(">2 of 5 starved</abbr>")).unwrap();
    let row = row.split("</tr>").next().unwrap();
    assert!(row.starts_with("few\""), "neither better nor worse: {row}");
    assert!(row.contains("&gt;&#8239;3.2") && row.contains("<td class=\"n\">5</td>"), "{row}");
    // Names are in elements of their own, so that they follow renaming.
    let words: String =
        page.split('<').map(|p| p.split_once('>').map_or(p, |(_, text)| text)).collect();
    assert!(words.contains("bfq starved reads of writers"));
    assert!(page.contains("&gt; at least, ~ about"), "the legend");
    assert!(!page_of(&records[..1]).contains("&gt; at least, ~"), "a legend of what is not there");
}

/// A page of single values has no column for intervals: what stood there lay over the number beside it.
#[test]
fn one_value_beyond_its_limit_has_its_sign_and_nothing_over_it() {
    let mut records = synthetic::records(1, 2, 1);
    for r in &mut records {
        r.metrics.push(iosched_experiment::Metric {
            name: "startup_time".into(),
            value: 60.0,
            unit: "s".into(),
            higher_is_better: Some(false),
            censored: true,
        });
    }
    let page = page_of(&records);
    let cell = page.split("<td class=\"v\"").find(|c| c.contains("&gt;&#8239;60.0<span> s"));
    let row = cell.unwrap().split("</tr>").next().unwrap();
    assert!(row.starts_with(" title=\"at least: a round that stopped at its limit"), "{row}");
    assert!(row.contains("<td class=\"ci\" title=\"\"></td>"), "{row}");
    assert!(!page.contains("1 of 1 at limit</abbr>"));
}

/// Of the kernel's own schedulers none delivers anything: the plot says infinity, in its label, too.
#[test]
fn infinitely_many_times_better_is_no_long_number() {
    let mut records = synthetic::records(1, 5, 3);
    for r in &mut records {
        let cfq = r.trial.scheduler.starts_with("cfq");
        r.trial.scheduler = r.trial.scheduler.replace("@6.12", "");
        r.jobs.clear();
        r.metrics = vec![iosched_experiment::record::Metric {
            name: "tps".into(),
            value: if cfq { 100.0 + f64::from(r.trial.repetition) } else { 0.0 },
            unit: "1/s".into(),
            higher_is_better: Some(true),
            censored: false,
        }];
    }
    let page = page_of(&records);
    assert!(page.contains("cfq ∞\""), "the label of the plot");
    assert!(page.contains("<title>cfq ∞</title>"), "the mark of a scheduler of another kernel");
    let digits = page.split(|c: char| !c.is_ascii_digit() && c != ',').map(str::len).max();
    assert!(digits.is_some_and(|n| n < 100), "{digits:?} digits in a row");
}

/// Samples of another program: rates of reads and writes, and nobody added them up.
#[test]
fn a_page_adds_up_two_rates() {
    let head = "scheduler,workload,repetition,metric,unit,better,value\n";
    let row = |s: &str, m: &str, v: u32| format!("{s},w,1,{m},B/s,higher,{v}\n");
    let rows = ["none", "bfq"].map(|s| row(s, "read.bw", 1_000) + &row(s, "write.bw", 2_000));
    let trial = iosched_experiment::TrialId::default();
    let csv = format!("{head}{}", rows.concat());
    let records = iosched_results::import::import("x.csv", &csv, None, &trial).unwrap();
    let page = page_of(&records);
    for rate in ["1.00", "2.00", "3.00"] {
        assert!(page.contains(&format!("<td class=\"v\">{rate}<span> kB/s</span>")), "{rate}");
    }
}

/// The total of reads and writes is shown, and its parts count: a third figure would make bfq the better one.
#[test]
fn means_count_no_total_beside_its_parts() {
    let mut records = synthetic::records(1, 2, 1);
    for r in &mut records {
        let none = r.trial.scheduler.starts_with("none");
        r.jobs.clear();
        let metric = |name: &str, value: f64| iosched_experiment::record::Metric {
            name: name.into(),
            value,
            unit: "B/s".into(),
            higher_is_better: Some(true),
            censored: false,
        };
        let (read, write) = if none { (1e8, 1e8) } else { (2e8, 0.5e8) };
        r.metrics = vec![metric("read.bw", read), metric("write.bw", write)];
    }
    let page = page_of(&records);
    assert!(page.contains("total.bw"));
    assert_eq!(page.matches("<td>100,000,000</td>").count(), 2, "both geometric means");
    assert!(page.contains("of the best throughput (2 tests)"));
}
