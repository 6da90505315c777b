//! `iosched reproduce`.

use serde_json::Value;

use super::Place;

#[test]
fn it_lists_and_knows_the_nearest_name() {
    let place = Place::new();
    let list = place.out(&["reproduce"]);
    assert!(list.contains("linux-3.12") && list.contains("pg-test-fsync-ssd"), "{list}");
    let why = place.fails(2, &["reproduce", "linux-4.13"]);
    assert!(why.contains("did you mean \"linux-4.12\"?"), "{why}");
    let page = place.dir.path().join("p.html");
    let args = ["report", "--published", "linux-4.1", "--html", page.to_str().unwrap()];
    let why = place.fails(2, &args);
    assert_eq!(why.matches("did you mean").count(), 1, "{why}");
}

#[test]
fn a_quick_look_has_every_cell_claim_and_a_page() {
    let place = Place::new();
    let page = place.dir.path().join("p.html");
    let page_arg = page.to_str().unwrap();
    let args =
        ["reproduce", "pg-test-fsync-ssd", "--quick", "--format", "json", "--html", page_arg];
    let all: Value = serde_json::from_str(&place.out(&args)).unwrap();
    assert_eq!(all["quick"], true);
    let cells = all["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 14 * 4);
    for c in cells {
        assert!(c["published"].is_f64() && c["ours"].is_f64(), "{c}");
        assert!(["agree", "disagree", "none"].contains(&c["direction"].as_str().unwrap()));
        assert!(c["significant"].is_boolean() && c["published_ratio"].is_f64());
    }
    for c in all["claims"].as_array().unwrap() {
        assert!(["agree", "disagree", "not-measurable"].contains(&c["verdict"].as_str().unwrap()));
        assert!(!c["evidence"].as_str().unwrap().is_empty());
    }
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<svg") && page.contains("Claims"));
}
