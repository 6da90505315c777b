//! `--quick`: short runs of what comes with the program.

use iosched_experiment::{Experiment, JobSource, Place, Placed};

use crate::choose::mistyped;
use crate::fail::Outcome;
use crate::files::note;
use crate::jobs;

/// Makes every program short that can be, and jobs that say how short they may be.
pub(crate) fn quick(e: &mut Experiment, quiet: bool) -> Outcome {
    let place = Place::option("--quick", "--quick", "--quick");
    let mut found = false;
    for w in &mut e.workloads {
        if let JobSource::Program(p) = &mut w.value.job {
            found |= p.shorten(&place);
        }
    }
    if let Some(options) = of_jobs(e) {
        found = true;
        for (key, value) in options {
            if e.set.iter().all(|o| o.value.0 != key) {
                if !quiet {
                    note(&format!("--quick: {key}={value}"));
                }
                e.set.push(Placed::new((key.into(), value.into()), place.clone()));
            }
        }
    }
    if found || mistyped(e) {
        return Ok(());
    }
    let d = place.error(
        "--quick is for programs of a published length, and there is none among the workloads",
    );
    Err(d.with_help("see `iosched list workloads`; for fio jobs --set runtime=2s").into())
}

/// Options that make the experiment's fio jobs short. They hold for all jobs of an experiment, so all of these have to say the
/// same.
fn of_jobs(e: &Experiment) -> Option<Vec<(&'static str, &'static str)>> {
    let mut all = e.workloads.iter().filter_map(|w| match &w.value.job {
        JobSource::File(name) => Some(jobs::find(name).ok().map(jobs::quick)),
        JobSource::Text(_) => Some(None),
        _ => None,
    });
    let first = all.next()??;
    (!first.is_empty() && all.all(|o| o.as_ref() == Some(&first))).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(workloads: &str, more: &str) -> Result<Vec<(String, String)>, String> {
        let text = format!(
            "devices = [\"hdd-7200\"]\nschedulers = [\"none\"]\nworkloads = [{workloads}]\n{more}"
        );
        let mut e = Experiment::from_toml("t", &text).unwrap();
        quick(&mut e, true).map_err(|f| format!("{f:?}"))?;
        Ok(e.set.iter().map(|o| o.value.clone()).collect())
    }

    #[test]
    fn a_job_that_says_how_short_it_may_be_is_made_so() {
        let short = of("\"bandwidth-latency\"", "").unwrap();
        let pair = |(k, v): (&str, &str)| (k.to_string(), v.to_string());
        assert_eq!(short, [("ramp_time", "1"), ("runtime", "2")].map(pair));
        let own = of("\"bandwidth-latency\"", "[set]\nruntime = \"4\"\n").unwrap();
        assert!(own.contains(&pair(("runtime", "4"))) && own.len() == 2, "{own:?}");
    }

    #[test]
    fn others_keep_their_length() {
        assert!(of("\"desktop\"", "").unwrap_err().contains("--quick is for programs"));
        assert_eq!(of("\"bandwidth-latency\", \"desktop\", \"sqlite\"", ""), Ok(Vec::new()));
    }
}
