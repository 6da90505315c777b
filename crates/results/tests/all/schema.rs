//! `docs/schema/results.schema.json` describes what is really written, and describes all of it.

#![allow(clippy::unwrap_used, reason = "a test")]

use iosched_experiment::record::*;
use iosched_results::published;
use iosched_results::store::Document;
use iosched_types::Op;
use serde_json::Value;

/// The keywords that our schema uses; any other is an error, so that nothing goes unchecked.
fn check(root: &Value, schema: &Value, value: &Value, path: &str) -> Result<(), String> {
    let fail = |what: &str| Err(format!("{path}: {what}: {value}"));
    let Some(rules) = schema.as_object() else { return fail("schema is no object") };
    for (keyword, rule) in rules {
        match keyword.as_str() {
            "$schema" | "$id" | "$defs" | "title" | "description" | "additionalProperties" => {}
            "$ref" => {
                let name = rule
                    .as_str()
                    .and_then(|r| r.strip_prefix("#/$defs/"))
                    .ok_or("a strange $ref")?;
                check(root, &root["$defs"][name], value, path)?;
            }
            "type" => {
                let names = rule.as_array().cloned().unwrap_or_else(|| vec![rule.clone()]);
                if !names.iter().any(|n| is(n.as_str().unwrap_or_default(), value)) {
                    return fail(&format!("not of type {rule}"));
                }
            }
            "const" if value != rule => return fail("not the constant"),
            "const" => {}
            "enum" if !rule.as_array().is_some_and(|r| r.contains(value)) => {
                return fail("not in the list");
            }
            "enum" => {}
            "minimum" if value.is_number() && value.as_f64() < rule.as_f64() => {
                return fail("too small");
            }
            "minimum" => {}
            "oneOf" => {
                let hits = rule
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter(|r| check(root, r, value, path).is_ok());
                if hits.count() != 1 {
                    return fail("not exactly one of the forms");
                }
            }
            "required" => {
                if let Some(k) = rule
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .find(|k| value.get(k).is_none())
                {
                    return fail(&format!("{k} is missing"));
                }
            }
            "properties" => {
                for (k, v) in value.as_object().into_iter().flatten() {
                    match rule.get(k) {
                        Some(r) => check(root, r, v, &format!("{path}/{k}"))?,
                        None if rules["additionalProperties"] == Value::Bool(false) => {
                            return fail(&format!("{k} is not described"));
                        }
                        None => {}
                    }
                }
            }
            "items" => {
                for (i, v) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, rule, v, &format!("{path}/{i}"))?;
                }
            }
            "prefixItems" => {
                for (v, r) in value
                    .as_array()
                    .into_iter()
                    .flatten()
                    .zip(rule.as_array().into_iter().flatten())
                {
                    check(root, r, v, path)?;
                }
            }
            "minItems"
                if value
                    .as_array()
                    .is_some_and(|a| (a.len() as u64) < rule.as_u64().unwrap_or(0)) =>
            {
                return fail("too few");
            }
            "maxItems"
                if (value.as_array().map_or(0, Vec::len) as u64) > rule.as_u64().unwrap_or(0) =>
            {
                return fail("too many");
            }
            "minItems" | "maxItems" => {}
            other => return Err(format!("{path}: keyword {other} is not checked")),
        }
    }
    Ok(())
}

fn is(name: &str, v: &Value) -> bool {
    match name {
        "object" => v.is_object(),
        "array" => v.is_array(),
        "string" => v.is_string(),
        "boolean" => v.is_boolean(),
        "number" => v.is_number(),
        "integer" => v.is_u64() || v.is_i64(),
        "null" => v.is_null(),
        _ => false,
    }
}

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../../docs/schema/results.schema.json")).unwrap()
}

fn full() -> Record {
    let mut job = JobRecord {
        name: "j".into(),
        error: Some("e".into()),
        run_times: 9,
        ..JobRecord::default()
    };
    job.options.insert("rw".into(), "read".into());
    job.read.clat.record(5_000);
    Record {
        jobs: vec![job, JobRecord::default()],
        status: Status::Invalid("cached".into()),
        device: DeviceStats {
            counters: [("hits".to_string(), 1)].into(),
            ..DeviceStats::default()
        },
        scheduler: SchedulerStats {
            tunables: [("x".to_string(), -1)].into(),
            ..SchedulerStats::default()
        },
        series: vec![Series { values: vec![1.0], ..Series::default() }],
        dispatches: vec![DispatchPoint { t: 1, sector: 2, sectors: 3, op: Op::Flush, pid: 4 }],
        metrics: vec![Metric::default()],
        warnings: vec![Warning::default()],
        ..Record::default()
    }
}

#[test]
fn documents_follow_the_schema() {
    let schema = schema();
    let mut documents = vec![Document::of("full", vec![full()])];
    documents.extend(
        published::names().into_iter().map(|n| Document::of(n, published::records(n).unwrap())),
    );
    // With answers: measurable, not testable, and history.
    let answered: Vec<Document> =
        documents.iter().map(|d| Document::answered(d.experiments.clone())).collect();
    assert!(answered.iter().flat_map(|d| &d.experiments).any(|e| !e.answers.is_empty()));
    documents.extend(answered);
    let mut unmeasured = published::records("linux-4.12").unwrap();
    unmeasured[0].provenance.insert("goal".into(), "read.bw".into());
    let noted = Document::answered(Document::of("x", unmeasured).experiments);
    assert!(noted.experiments[0].notes[0].contains("read.bw"));
    documents.push(noted);
    for d in documents {
        check(&schema, &schema, &serde_json::to_value(&d).unwrap(), "").unwrap();
    }
}

/// A member of a record that the schema does not describe would go unnoticed by the check above.
#[test]
fn every_member_of_a_record_is_described() {
    let schema = schema();
    let described = &schema["$defs"]["record"]["properties"];
    for (k, _) in serde_json::to_value(full()).unwrap().as_object().unwrap() {
        assert!(described.get(k).is_some(), "{k} is missing in docs/schema/results.schema.json");
    }
}

#[test]
fn wrong_documents_do_not_follow_it() {
    let schema = schema();
    let good = serde_json::to_value(Document::of("x", vec![full()])).unwrap();
    let wrong: [fn(&mut Value); 4] = [
        |v| v["format"] = "other".into(),
        |v| v["experiments"][0]["records"][0]["elapsed"] = "long".into(),
        |v| drop(v["experiments"][0].as_object_mut().unwrap().remove("name")),
        |v| v["experiments"][0]["records"][0]["jobs"][0]["read"]["extra"] = 1.into(),
    ];
    for spoil in wrong {
        let mut v = good.clone();
        spoil(&mut v);
        assert!(check(&schema, &schema, &v, "").is_err());
    }
}
