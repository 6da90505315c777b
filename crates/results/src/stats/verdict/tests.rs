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
fn three_runs_are_not_enough_however_far_apart() {
    let j = of(&sample(&[1.0, 1.1, 1.2]), &sample(&[9.0, 9.1, 9.2]), Better::Higher);
    assert_eq!(j.verdict, Verdict::NotEnoughData);
    assert_eq!(
        of(&sample(&[1.0]), &sample(&[9.0]), Better::Higher).verdict,
        Verdict::NotEnoughData
    );
}

#[test]
fn overlapping_runs_have_no_measurable_difference() {
    let (a, b) =
        (sample(&[10.0, 11.0, 9.0, 10.5, 9.5, 10.0]), sample(&[10.1, 9.4, 10.4, 9.9, 10.8, 9.6]));
    assert_eq!(of(&a, &b, Better::Higher).verdict, Verdict::NoMeasurableDifference);
}

#[test]
fn the_simulator_is_exact() {
    let j = of(&exact(100.0, 3), &exact(101.0, 3), Better::Higher);
    assert_eq!(j.verdict, Verdict::Better);
    assert_eq!(j.words(), "better (exact, deterministic)");
    assert_eq!(j.new.ci.map(|c| c.high - c.low), Some(0.0));
    let same = of(&exact(100.0, 3), &exact(100.0, 3), Better::Higher);
    assert_eq!(same.verdict, Verdict::NoMeasurableDifference);
    // A single run says nothing about the seed's part in it.
    assert_eq!(
        of(&exact(100.0, 1), &exact(101.0, 1), Better::Higher).verdict,
        Verdict::NotEnoughData
    );
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
    assert_eq!((j.verdict, j.base.mean, j.ratio), (Verdict::Better, None, None));
}

#[test]
fn many_comparisons_need_more_data() {
    let (a, b) = (sample(&[1.0, 1.1, 1.2, 1.3]), sample(&[2.0, 2.1, 2.2, 2.3]));
    let mut cells: Vec<Judged> = (0..10).map(|_| of(&a, &b, Better::Higher)).collect();
    assert_eq!(cells[0].verdict, Verdict::Better);
    correct_family(&mut cells.iter_mut().collect::<Vec<_>>(), VerdictOptions::default());
    // p = 2/70 survives no correction by ten, and no p of four runs could.
    assert_eq!(cells[0].verdict, Verdict::NotEnoughData);
}

#[test]
fn holm_steps_down() {
    assert_eq!(holm(&[0.01, 0.04, 0.03]), [0.03, 0.06, 0.06]);
    assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    assert!(holm(&[]).is_empty());
}
