//! Job files to jobs.

use std::rc::Rc;

use iosched_types::Diagnostic;

use super::cmdline;
use super::draft::Draft;
use super::expand::{Lookup, expand};
use super::finish::{self, Counters};
use super::lexer::{Include, Line, MAX_ERRORS, RawOption, Section, lex};
use super::live;
use super::newer;
use super::option::{Effect, OptionDef, describe, find_option, nearest_option};
use super::spec::JobSet;
use super::value::{self, ValueError};

/// Parses a job file.
///
/// `include` gives the text of an included file or of an I/O log by its name, or a reason why not.
/// `overrides` are applied last to every job, as if they stood at the end of each section.
/// Nothing outside of the arguments is read.
///
/// # Errors
/// Everything that is wrong, up to twenty diagnostics: malformed lines and values, unknown options, options with an
/// effect that is not simulated. [`check_files`](super::check_files) finds jobs that are well-formed
/// but do not go together.
pub fn parse(
    file_name: &str,
    text: &str,
    env: &dyn Lookup,
    include: &dyn Fn(&str) -> Result<String, String>,
    overrides: &[(String, String)],
) -> Result<JobSet, Vec<Diagnostic>> {
    read(file_name, text, (env, include), overrides, false)
}

/// Parses a job file for the real fio. Keeps options that only the real fio can follow in [`JobSpec::live_only`].
///
/// [`JobSpec::live_only`]: super::JobSpec::live_only
///
/// # Errors
/// As [`parse`], except for options that are live only.
pub fn parse_live(
    file_name: &str,
    text: &str,
    env: &dyn Lookup,
    include: &dyn Fn(&str) -> Result<String, String>,
    overrides: &[(String, String)],
) -> Result<JobSet, Vec<Diagnostic>> {
    read(file_name, text, (env, include), overrides, true)
}

fn read(
    file_name: &str,
    text: &str,
    (env, include): (&dyn Lookup, Include<'_>),
    overrides: &[(String, String)],
    live: bool,
) -> Result<JobSet, Vec<Diagnostic>> {
    let mut warnings = Vec::new();
    let sections = match cmdline::sections(file_name, text, include, &mut warnings) {
        Some(sections) => sections?,
        None => lex(file_name, text, include)?,
    };
    let overrides = override_options(overrides);
    let mut parser = Parser {
        env,
        include,
        live,
        set: JobSet { warnings, ..JobSet::default() },
        errors: Vec::new(),
    };
    parser.sections(&sections, &overrides);
    if parser.errors.is_empty() && parser.set.jobs.is_empty() {
        let d = Diagnostic::file(file_name, "there is no job in the file");
        parser.errors.push(d.with_help("a section such as [job1] defines a job"));
    }
    if parser.errors.is_empty() { Ok(parser.set) } else { Err(parser.errors) }
}

fn override_options(overrides: &[(String, String)]) -> Vec<RawOption> {
    let file: Rc<str> = "--set".into();
    let option = |(key, value): &(String, String)| {
        let text = if value.is_empty() { key.clone() } else { format!("{key}={value}") };
        RawOption {
            key: key.clone(),
            value: (!value.is_empty()).then(|| value.clone()),
            line: Line::new(&file, 1, &text),
            key_column: 1,
            value_column: key.chars().count() + 2,
        }
    };
    overrides.iter().map(option).collect()
}

struct Parser<'a> {
    env: &'a dyn Lookup,
    include: Include<'a>,
    live: bool,
    set: JobSet,
    errors: Vec<Diagnostic>,
}

impl Parser<'_> {
    fn sections(&mut self, sections: &[Section], overrides: &[RawOption]) {
        let mut global = Draft::default();
        let mut counters = Counters::default();
        for section in sections {
            if self.errors.len() >= MAX_ERRORS {
                return;
            }
            if section.name == "global" {
                self.options(&mut global, &section.options);
                continue;
            }
            let mut draft = global.clone();
            self.options(&mut draft, &section.options);
            self.options(&mut draft, overrides);
            if !self.errors.is_empty() {
                continue;
            }
            let warnings = &mut self.set.warnings;
            let line = &section.line;
            match finish::jobs(draft, &section.name, line, self.include, &mut counters, warnings) {
                Ok(jobs) => self.set.jobs.extend(jobs),
                Err(d) => self.errors.push(d),
            }
        }
    }

    /// Applies options in their order, `kb_base` first since it decides how the others are read.
    fn options(&mut self, draft: &mut Draft, options: &[RawOption]) {
        for first in [true, false] {
            for option in options.iter().filter(|o| (o.key == "kb_base") == first) {
                if self.errors.len() >= MAX_ERRORS {
                    return;
                }
                if let Err(d) = self.option(draft, option)
                    && !self.errors.contains(&d)
                {
                    self.errors.push(d);
                }
            }
        }
    }

    fn option(&mut self, draft: &mut Draft, raw: &RawOption) -> Result<(), Diagnostic> {
        let shown: String = raw.key.chars().take(40).collect();
        let Some(def) = find_option(&raw.key) else {
            if let Some(what) = newer::option(&raw.key) {
                let d = raw.at_key(format!("option \"{shown}\" is of a fio newer than 3.33"));
                return Err(
                    d.with_help(format!("it {what}; iosched knows the options of fio 3.33"))
                );
            }
            let d = raw.at_key(format!("unknown option \"{shown}\""));
            return Err(d.with_help(nearest_option(&raw.key)));
        };
        let mut missing = Vec::new();
        let value = match &raw.value {
            None => None,
            Some(text) => Some(
                expand(text, self.env, &mut missing)
                    .map_err(|e| at(raw, def, e, &missing, false))?,
            ),
        };
        let exact = value == raw.value;
        if self.live
            && self
                .keep(draft, def, value.as_deref())
                .map_err(|e| at(raw, def, e, &missing, exact))?
        {
            return Ok(());
        }
        let result = match def.effect {
            Effect::Simulated => draft.apply(def.name, value.as_deref()),
            Effect::NoEffect(_) | Effect::Unmodelled(_) => {
                let checked = value::check(def.kind, value.as_deref(), draft.kb());
                if checked.is_ok() || optional_text(def, value.as_deref()) {
                    self.warn(raw, def, value.as_deref());
                    return Ok(());
                }
                checked
            }
            Effect::Refused { reason, harmless } => {
                if value.as_deref().is_some_and(|v| harmless.contains(&v.trim())) {
                    return Ok(());
                }
                let only = if live::is_live_only(def.name) { LIVE } else { "" };
                Err(ValueError::new(format!("{} is not supported: {reason}{only}", def.name)))
                    .map_err(|e| if harmless.is_empty() { e } else { e.help(allowed(harmless)) })
            }
        };
        result.map_err(|e| at(raw, def, e, &missing, exact))
    }

    /// Keeps an option that only the real fio can follow. Returns whether it was one.
    fn keep(
        &self,
        draft: &mut Draft,
        def: &OptionDef,
        text: Option<&str>,
    ) -> Result<bool, ValueError> {
        if !live::is_live_only(def.name) {
            return Ok(false);
        }
        let value = live::checked(def, text, draft.kb())?;
        draft.spec.live_only.retain(|(name, _)| name != def.name);
        draft.spec.live_only.push((def.name.to_string(), value));
        Ok(true)
    }

    fn warn(&mut self, raw: &RawOption, def: &OptionDef, value: Option<&str>) {
        let (place, name) = (raw.line.place(), def.name);
        let sentence = match def.effect {
            Effect::Unmodelled(_)
                if value.is_some_and(|v| v.trim() == "0" || v.starts_with("taus")) =>
            {
                return;
            }
            Effect::Unmodelled(instead) => format!("{place}: {name} is not modelled: {instead}"),
            Effect::NoEffect(why) => format!("{place}: {name} has no effect on timing: {why}"),
            Effect::Simulated | Effect::Refused { .. } => return,
        };
        if !self.set.warnings.contains(&sentence) {
            self.set.warnings.push(sentence);
        }
    }
}

/// Said of what only the simulator refuses.
const LIVE: &str = " (live only: --backend emulated and real take it)";

/// Log options may stand without a file name.
fn optional_text(def: &OptionDef, value: Option<&str>) -> bool {
    value.is_none() && def.name.starts_with("write_") && def.name.ends_with("_log")
}

fn allowed(harmless: &[&str]) -> String {
    format!("accepted is {}", harmless.join(" or "))
}

/// Puts a value's error at its place in the file. `exact` says that the value is as written, so that
/// positions within it are columns of the line.
fn at(
    raw: &RawOption,
    def: &OptionDef,
    e: ValueError,
    missing: &[String],
    exact: bool,
) -> Diagnostic {
    let mut d = raw.at_value(if e.message.starts_with(def.name) {
        e.message
    } else {
        format!("{}: {}", def.name, e.message)
    });
    if exact && e.width > 0 {
        d.column += e.at;
        d.width = e.width;
    }
    if !missing.is_empty() {
        return d.with_help(format!("not set in the environment: {}", missing.join(", ")));
    }
    if e.help.is_empty() && matches!(def.effect, Effect::Simulated) {
        return d.with_help(format!("{} takes: {}", def.name, describe(def.kind)));
    }
    d.with_help(e.help)
}
