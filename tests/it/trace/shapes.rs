//! Curves of known truth, and what is said of them.

use oom_ledger_core::trace::{Flag, Sample, Series, Shape, Timeline, Verdict, classify};

const MIB: u64 = 1 << 20;

/// A small generator of noise: the same in every run.
struct Noise(u64);

impl Noise {
    /// A number in 0..1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1u64 << 31) as f64
    }
}

/// A card of 24 GiB, one sample a `step` of seconds; pages of 2 MiB.
fn series(step: f64, values: &[f64]) -> Series {
    let sample = |(i, v): (usize, &f64)| Sample {
        time: i as f64 * step,
        used: (v.max(0.0) / 2.0).round() as u64 * 2 * MIB,
        line: i as u32 + 1,
    };
    Series {
        gpu: "0".into(),
        total: Some(24_576 * MIB),
        samples: values.iter().enumerate().map(sample).collect(),
        ..Series::default()
    }
}

fn judge(step: f64, values: &[f64]) -> Verdict {
    let timeline = Timeline { format: "test", series: vec![series(step, values)], warnings: Vec::new() };
    classify(&timeline).remove(0)
}

fn flat(n: usize, v: f64) -> Vec<f64> {
    vec![v; n]
}

fn cycle(n: usize, period: usize, lo: f64, hi: f64, drift: f64) -> Vec<f64> {
    (0..n).map(|i| drift * i as f64 + lo + (hi - lo) * (i % period) as f64 / (period - 1) as f64).collect()
}

#[test]
fn each_shape_is_told() {
    let join = |parts: &[Vec<f64>]| parts.concat();
    let grown: Vec<f64> = (0..400).map(|i| 9000.0 + 3.0 * f64::from(i)).collect();
    let steep: Vec<f64> = (0..12).map(|i| 8000.0 + 1290.0 * f64::from(i)).collect();
    let mut noise = Noise(7);
    let bursts: Vec<f64> = (0..300)
        .map(|i| if noise.next() < 0.08 || i % 97 == 0 { 3000.0 + 15_000.0 * noise.next() } else { 1500.0 })
        .collect();
    let cases: Vec<(Shape, Vec<f64>)> = vec![
        (Shape::Insufficient, flat(4, 5000.0)),
        (Shape::Insufficient, vec![17_706.0, 0.0, 0.0, 0.0, 0.0]),
        (Shape::Idle, flat(60, 12.0)),
        (Shape::Flat, flat(60, 12_000.0)),
        (Shape::Pool, join(&[flat(10, 500.0), flat(60, 22_900.0)])),
        (Shape::RampPlateau, join(&[flat(10, 4.0), vec![2000.0, 6000.0, 9000.0], flat(80, 11_000.0)])),
        (
            Shape::Staircase,
            join(&[flat(30, 1000.0), flat(30, 3000.0), flat(30, 5500.0), flat(30, 8000.0), flat(30, 9500.0)]),
        ),
        // A smooth load that flattens out is no staircase and no growth.
        (Shape::RampPlateau, (0..300).map(|i| 11_000.0 * (1.0 - (-f64::from(i) / 30.0).exp())).collect()),
        (Shape::Growth, join(&[vec![4.0, 4.0], grown])),
        (Shape::Growth, steep),
        (Shape::Spike, join(&[flat(50, 600.0), flat(4, 20_000.0), flat(60, 2.0)])),
        (Shape::Sawtooth, cycle(300, 15, 900.0, 9000.0, 0.0)),
        (
            Shape::OnOff,
            (0..8).flat_map(|i| flat(20 + 3 * i, if i % 2 == 0 { 9000.0 } else { 210.0 })).collect(),
        ),
        (Shape::Bursts, bursts),
    ];
    for (shape, values) in cases {
        let got = judge(5.0, &values);
        assert_eq!(got.shape, shape, "{got:?}");
    }
}

#[test]
fn each_flag_is_set_and_not_set() {
    let has = |values: &[f64], flag| judge(5.0, values).flags.contains(&flag);
    let job = |v: f64| [flat(10, 4.0), flat(60, v)].concat();
    let end = |v: f64, n| [job(v), flat(n, 4.0)].concat();
    assert!(has(&job(22_500.0), Flag::NearFull) && !has(&job(12_000.0), Flag::NearFull));
    assert!(has(&end(9000.0, 3), Flag::Released) && !has(&job(9000.0), Flag::Released));
    assert!(has(&end(9000.0, 60), Flag::IdleTail) && !has(&end(9000.0, 3), Flag::IdleTail));
    assert!(has(&[job(9000.0), flat(10, 4.0), flat(40, 9000.0)].concat(), Flag::Restarts));
    assert!(!has(&job(9000.0), Flag::Restarts));
    let steep: Vec<f64> = (0..12).map(|i| 8000.0 + 1290.0 * f64::from(i)).collect();
    assert!(has(&steep, Flag::EndsAtPeak) && !has(&job(22_500.0), Flag::EndsAtPeak));
    let mut noise = Noise(3);
    let wavering: Vec<f64> = (0..80).map(|_| 9000.0 + 2500.0 * noise.next()).collect();
    assert!(has(&[flat(10, 4.0), wavering].concat(), Flag::Noisy) && !has(&job(9000.0), Flag::Noisy));
    assert!(has(&cycle(600, 12, 900.0, 9000.0, 2.0), Flag::RisingFloor));
    assert!(!has(&cycle(600, 12, 900.0, 9000.0, 0.0), Flag::RisingFloor));

    let mut gap = series(5.0, &flat(60, 9000.0));
    let judged = |s: &Series| {
        classify(&Timeline { format: "test", series: vec![s.clone()], warnings: Vec::new() }).remove(0)
    };
    assert!(!judged(&gap).flags.contains(&Flag::Gaps));
    for sample in &mut gap.samples[30..] {
        sample.time += 3600.0;
    }
    assert!(judged(&gap).flags.contains(&Flag::Gaps));
    gap.lost = Some(61);
    assert!(judged(&gap).flags.contains(&Flag::Lost));

    let cards = |a: f64, b: f64| {
        let series = vec![series(5.0, &flat(60, a)), series(5.0, &flat(60, b))];
        classify(&Timeline { format: "test", series, warnings: Vec::new() })
    };
    assert!(cards(9000.0, 200.0).iter().all(|v| v.flags.contains(&Flag::Imbalanced)));
    assert!(cards(9000.0, 8800.0).iter().all(|v| v.flags.is_empty()));
}

/// A leak of 256 MiB an hour in ten hours of samples every 30 s: its rate, and the time that is left.
#[test]
fn a_leak_has_its_rate_and_its_end() {
    let values: Vec<f64> = (0..1200).map(|i| 10_000.0 + 256.0 * f64::from(i) * 30.0 / 3600.0).collect();
    let got = judge(30.0, &values);
    assert_eq!(got.shape, Shape::Growth);
    let rate = got.growth_mib_per_min.unwrap();
    assert!((rate - 256.0 / 60.0).abs() < 0.01, "{rate}");
    let left = got.minutes_to_full.unwrap();
    assert!((left - (24_576.0 - values[1199]) / (256.0 / 60.0)).abs() < 5.0, "{left}");
}

/// Leaks under cycles and under noise are found; the same curves without a leak are not called one.
#[test]
fn leaks_are_found_and_nothing_else_is() {
    let (mut found, mut false_alarms, mut n) = (0, 0, 0);
    for seed in 1..=100u64 {
        let mut noise = Noise(seed * 7919);
        let period = 8 + (noise.next() * 40.0) as usize;
        let hi = 4000.0 + 12_000.0 * noise.next();
        let jitter = 20.0 * noise.next();
        for leak in [0.0, 256.0 / 3600.0 * 10.0] {
            // Three hours, a sample every 10 s.
            let mut values = cycle(1080, period, 800.0, hi, leak);
            for v in &mut values {
                *v += jitter * noise.next();
            }
            let got = judge(10.0, &values);
            let leaking = got.shape == Shape::Growth || got.flags.contains(&Flag::RisingFloor);
            if leak > 0.0 {
                n += 1;
                found += usize::from(leaking);
            } else {
                false_alarms += usize::from(leaking);
            }
        }
    }
    println!("leaks under cycles: {found} of {n} found, {false_alarms} false alarms");
    assert!(found * 10 >= n * 9 && false_alarms * 100 <= n);
}
