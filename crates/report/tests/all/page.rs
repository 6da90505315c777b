//! What a page promises: one file, small, inert, complete, the same every time.

#![allow(clippy::unwrap_used, reason = "a test")]

use iosched_report::{Input, Options, html};
use iosched_results::published;

use crate::synthetic;

pub(crate) fn page_of(records: &[iosched_experiment::Record]) -> String {
    html(&Input::from_records(Options { title: "t".into(), ..Options::default() }, records))
}

#[test]
fn twenty_workloads_by_eight_schedulers_stay_small_and_load_nothing() {
    let records = synthetic::records(20, 8, 5);
    let page = page_of(&records);
    // The limit is 1.7 MB; this leaves room for names that are longer than these.
    assert!(page.len() < 1_650_000, "{} bytes", page.len());
    // A namespace is a name, not an address; `url(#…)` is in the page itself.
    let links = page.replace("http://www.w3.org/2000/svg", "").replace("url(#", "");
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

/// A film that never began is beyond its limit in the only run, too.
#[test]
fn one_run_beyond_its_limit_says_what_the_signs_mean() {
    let signs = "at least, ~ about: rounds beyond a limit";
    let mut records = synthetic::records(1, 2, 1);
    records.iter_mut().for_each(|r| r.metrics = vec![metric("drop rate", "%", false, 2.0)]);
    let page = page_of(&records);
    assert!(page.contains("One value of each") && !page.contains(signs));
    records[0].metrics[0].censored = true;
    let page = page_of(&records);
    assert!(page.contains("One value of each") && page.contains(signs));
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
        let settled = if r.trial.scheduler.starts_with("none") { 2.0 } else { 5.0 } * 1_048_576.0;
        let curve = r.series.iter_mut().find(|s| s.name == "throughput").unwrap();
        curve.values = [[1e3, 9e8].repeat(50), vec![settled; 100]].concat();
    }
    assert!(page_of(&records).contains("second half 2.00 MiB&#x2f;s to 5.00 MiB&#x2f;s"));
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

/// What stands beside a bar is on the scale of the overview: times better. The same change in per cent would be a second figure of it.
#[test]
fn a_comparison_has_one_scale() {
    let page = page_of(&synthetic::records(3, 4, 5));
    let beside: Vec<&str> =
        page.split("<td class=\"ch\"").skip(1).filter_map(|t| t.split("</td>").next()).collect();
    assert!(beside.len() > 20);
    assert!(beside.iter().all(|t| !t.contains('%') && !t.contains('×')), "{beside:?}");
    let overview = page.split("id=\"mx\"").nth(1).unwrap().split("</table>").next().unwrap();
    let cells = overview.split("<span>").skip(1).filter_map(|t| t.split("</span>").next());
    assert!(cells.clone().count() > 20 && cells.clone().all(|t| !t.contains('%')));
}

/// Thirty columns have no room for a figure: then devices stand below each other, each with its heads.
#[test]
fn many_columns_stand_below_each_other() {
    let on = |devices: usize| {
        let all = synthetic::records(2, 8, 2);
        let one = all[0].trial.device.clone();
        let all = all.into_iter().filter(move |r| r.trial.device == one);
        let of = |r: iosched_experiment::Record| {
            (0..devices).map(move |d| {
                let mut r = r.clone();
                r.trial.device = format!("disk-{d}");
                r
            })
        };
        page_of(&all.flat_map(of).collect::<Vec<_>>())
    };
    let page = on(3);
    let overview = page.split("id=\"mx\"").nth(1).unwrap().split("</table>").next().unwrap();
    let columns = overview.split("</colgroup>").next().unwrap().matches("<col").count();
    assert_eq!(columns, 2 + 8, "the group, the names, and eight schedulers");
    assert_eq!(overview.matches("rowspan=\"3\">Measure").count(), 3);
    assert!(overview.contains("<tbody class=\"d2 hd\"><tr class=\"h\">"));
    let one = on(1);
    let overview = one.split("id=\"mx\"").nth(1).unwrap().split("</table>").next().unwrap();
    assert_eq!(overview.matches("rowspan=\"3\">Measure").count(), 1);
}
