use super::super::summary::Observation;
use super::*;

fn sample(v: &[f64]) -> Sample {
    let rounds = v.iter().zip(1..).map(|(x, r)| (r, Observation::from(*x))).collect();
    Sample { rounds, ..Sample::default() }
}

fn exact(v: f64, n: usize) -> Sample {
    Sample { deterministic: true, ..sample(&vec![v; n]) }
}

fn of(base: &Sample, new: &Sample, better: Better) -> Judged {
    judge(base, new, better, VerdictOptions::default())
}

#[test]
fn clear_differences_are_called_by_direction() {
    let (a, b) = (
        sample(&[10.0, 10.1, 9.9, 10.2, 10.0, 9.8]),
        sample(&[12.0, 12.1, 11.9, 12.3, 12.0, 11.8]),
    );
    assert_eq!(of(&a, &b, Better::Higher).verdict, Verdict::Better);
    assert_eq!(of(&a, &b, Better::Lower).verdict, Verdict::Worse);
    assert_eq!(of(&b, &a, Better::Lower).verdict, Verdict::Better);
    let j = of(&a, &b, Better::Lower);
    assert!((j.loss().unwrap() - 0.2).abs() < 0.01);
    assert_eq!(j.delta, 1.0);
}

#[test]
fn too_few_runs_say_how_many_are_needed() {
    let j = of(&sample(&[1.0, 1.4, 0.8]), &sample(&[1.3, 1.9, 1.2]), Better::Higher);
    assert_eq!(j.verdict, Verdict::NotEnoughData);
    let needs = j.needs.unwrap();
    assert!((5..30).contains(&needs), "{needs}");
    assert_eq!(j.words(), format!("not enough data, needs {needs} runs"));
    // One run says nothing about chance.
    let j = of(&sample(&[1.0]), &sample(&[9.0]), Better::Higher);
    assert_eq!((j.verdict, j.needs, j.p), (Verdict::NotEnoughData, None, None));
}

#[test]
fn the_same_means_that_no_difference_which_matters_is_left() {
    let (a, b) = (
        sample(&[10.0, 10.1, 9.9, 10.05, 9.95, 10.0]),
        sample(&[10.01, 9.94, 10.04, 9.99, 10.08, 9.96]),
    );
    assert_eq!(of(&a, &b, Better::Higher).verdict, Verdict::NoMeasurableDifference);
    // Five per cent apart and not significant: that is not "the same".
    let (a, b) = (sample(&[10.0, 11.0, 9.0, 10.5]), sample(&[10.5, 11.6, 9.5, 10.9]));
    assert_eq!(of(&a, &b, Better::Higher).verdict, Verdict::NotEnoughData);
}

#[test]
fn one_percent_is_negligible_however_certain() {
    let j = of(&exact(100.0, 3), &exact(99.2, 3), Better::Higher);
    assert_eq!(
        (j.verdict, j.words()),
        (Verdict::NoMeasurableDifference, "negligible (exact)".into())
    );
    let (a, b) = (sample(&[100.0, 100.01, 99.99, 100.0]), sample(&[100.8, 100.81, 100.79, 100.8]));
    assert_eq!(of(&a, &b, Better::Higher).words(), "negligible");
}

#[test]
fn the_simulator_is_exact() {
    let j = of(&exact(100.0, 3), &exact(101.2, 3), Better::Higher);
    assert_eq!(j.verdict, Verdict::Better);
    assert_eq!(j.words(), "better (exact)");
    assert_eq!(j.new.ci.map(|c| c.high - c.low), Some(0.0));
    let same = of(&exact(100.0, 3), &exact(100.0, 3), Better::Higher);
    assert_eq!(
        (same.verdict, same.words()),
        (Verdict::NoMeasurableDifference, "equal (exact)".into())
    );
    // A single run says nothing about the seed's part in it.
    assert_eq!(
        of(&exact(100.0, 1), &exact(101.0, 1), Better::Higher).verdict,
        Verdict::NotEnoughData
    );
}

#[test]
fn the_same_seeds_with_the_same_values_are_the_same() {
    let of_seeds = |v: &[f64]| Sample { deterministic: true, paired: true, ..sample(v) };
    let j = of(&of_seeds(&[3.0]), &of_seeds(&[3.0]), Better::Higher);
    assert_eq!(j.words(), "not enough data", "one trial alone");
    let j = of(&sample(&[3.0, 4.0]), &sample(&[3.0, 4.0]), Better::Higher);
    assert_eq!(j.words(), "equal (exact)", "a copy");
    let j = of(&of_seeds(&[3.0, 4.0]), &of_seeds(&[3.0, 4.0]), Better::Higher);
    assert_eq!(j.words(), "equal (exact)");
}

#[test]
fn nothing_usable_is_invalid() {
    let j = of(&sample(&[]), &sample(&[1.0, 2.0]), Better::Higher);
    assert_eq!(j.verdict, Verdict::Invalid);
}

#[test]
fn censored_values_are_judged_by_rank() {
    let limit = |r| (r, Observation { value: 60.0, censored: true });
    let stuck = Sample { rounds: (1..=6).map(limit).collect(), ..Sample::default() };
    let quick = sample(&[2.0, 2.1, 2.2, 1.9, 2.3, 2.0]);
    let j = of(&stuck, &quick, Better::Lower);
    assert_eq!((j.verdict, j.base.mean, j.ratio_ci), (Verdict::Better, None, None));
    // The limit counts as a value of the ratio, which is only about right.
    assert!(j.about() && j.ratio.is_some_and(|r| (0.03..0.04).contains(&r)), "{:?}", j.ratio);
    // Four of seven runs beyond the limit and three quick ones: ratio and ranks say the same, or nothing is said.
    let mixed = Sample { rounds: (1..=4).map(limit).collect(), ..Sample::default() };
    let mixed = Sample {
        rounds: mixed
            .rounds
            .into_iter()
            .chain([5, 6, 7].map(|r| (r, Observation::from(1.0))))
            .collect(),
        ..mixed
    };
    let steady = sample(&[20.0, 21.0, 22.0, 20.5, 21.5, 22.5, 20.2]);
    let j = of(&mixed, &steady, Better::Lower);
    assert!(j.ratio.unwrap() > 1.0 && j.delta < 0.0, "{j:?}");
    assert_eq!(j.verdict, Verdict::NotEnoughData);
}

#[test]
fn rounds_that_go_up_and_down_together_are_compared_as_pairs() {
    // Rounds differ by a factor of four, the second side is 10 % faster in each, give or take one.
    let jitter = [0.01, -0.01, 0.005, -0.005, 0.0, 0.008];
    let levels = [100.0, 400.0, 150.0, 330.0, 210.0, 260.0];
    let paired = |v: Vec<f64>| Sample { paired: true, ..sample(&v) };
    let base = paired(levels.to_vec());
    let new = paired(levels.iter().zip(jitter).map(|(v, j)| v * (1.1 + j)).collect());
    let j = of(&base, &new, Better::Higher);
    assert_eq!((j.test, j.verdict), (Test::Paired, Verdict::Better));
    let apart = Sample { paired: false, ..new };
    let j = of(&base, &apart, Better::Higher);
    assert_eq!((j.test, j.verdict), (Test::Welch, Verdict::NotEnoughData));
}

#[test]
fn values_that_are_not_positive_are_compared_as_they_are() {
    let j = of(&sample(&[0.0, 1.0, 0.5, 0.2]), &sample(&[9.0, 9.5, 9.2, 8.9]), Better::Lower);
    assert_eq!(j.verdict, Verdict::Worse);
    assert!((j.ratio.unwrap() - 9.15 / 0.425).abs() < 1e-9);
}

#[test]
fn rounded_figures_are_not_certain() {
    // Four times the same number on either side: one of 35 ways to sort eight values.
    let j = of(&sample(&[2.0; 4]), &sample(&[3.0; 4]), Better::Higher);
    assert_eq!(j.p, Some(2.0 / 70.0));
}

#[test]
fn many_comparisons_need_more_data() {
    let pair = (sample(&[1.0, 1.1, 1.2, 1.3]), sample(&[1.3, 1.5, 1.2, 1.4]));
    let level = sample(&[1.0, 1.1, 1.2, 1.3]);
    let other = sample(&[1.3, 1.2, 1.1, 1.0]);
    let mut groups = vec![(level, vec![other]); 20];
    assert_eq!(of(&pair.0, &pair.1, Better::Higher).verdict, Verdict::NotEnoughData);
    groups.push((sample(&[1.0, 1.1, 1.2, 1.3]), vec![sample(&[2.0, 2.1, 2.2, 2.3])]));
    let judged = judge_all(&groups, Better::Higher, VerdictOptions::default()).concat();
    assert_eq!(judged[20].verdict, Verdict::Better);
    assert!(judged[20].p_corrected > judged[20].p);
    assert_eq!(judged.iter().filter(|j| j.verdict == Verdict::Better).count(), 1);
}

#[test]
fn benjamini_and_hochberg_step_up() {
    let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(x, y)| (x - y).abs() < 1e-12);
    assert!(near(&benjamini_hochberg(&[0.01, 0.04, 0.03]), &[0.03, 0.04, 0.04]));
    assert!(near(&benjamini_hochberg(&[0.9, 0.8]), &[0.9, 0.9]));
    assert!(benjamini_hochberg(&[]).is_empty());
}

#[test]
fn a_copy_with_a_censored_value_is_equal() {
    let at = |value, censored| Observation { value, censored };
    let rounds = vec![(1, at(0.0, false)), (2, at(0.0, true))];
    let s = Sample { rounds, ..sample(&[0.0, 0.0]) };
    let j = of(&s, &s, Better::Higher);
    assert_eq!((j.verdict, j.words()), (Verdict::NoMeasurableDifference, "equal (exact)".into()));
}
