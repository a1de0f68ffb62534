//! One measured number, next to what it should be and to what it could be at best.

use std::time::Duration;

use serde::Serialize;

/// What a number should be.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Bar {
    Under(f64),
    Over(f64),
}

impl Bar {
    pub(super) fn holds(self, value: f64) -> bool {
        match self {
            Self::Under(bar) => value < bar,
            Self::Over(bar) => value > bar,
        }
    }
}

/// One measured number.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Figure {
    /// What was measured.
    pub(super) what: String,
    /// `ms`, `MB`, `kB`, `%` or `tasks/s`.
    pub(super) unit: &'static str,
    pub(super) value: f64,
    /// None: the number explains others.
    pub(super) bar: Option<Bar>,
    /// The same by the least that could do it, measured in the same run.
    pub(super) floor: Option<f64>,
    /// Measurements the number is made of.
    pub(super) samples: usize,
}

impl Figure {
    pub(super) fn new(
        what: impl Into<String>,
        unit: &'static str,
        value: f64,
        bar: impl Into<Option<Bar>>,
    ) -> Self {
        Self { what: what.into(), unit, value, bar: bar.into(), floor: None, samples: 1 }
    }

    pub(super) fn floor(mut self, floor: f64) -> Self {
        self.floor = Some(floor);
        self
    }

    pub(super) fn samples(mut self, samples: usize) -> Self {
        self.samples = samples;
        self
    }

    /// How many times as much as at the floor a unit of work takes.
    pub(super) fn ratio(&self) -> Option<f64> {
        let floor = self.floor?;
        Some(match self.bar {
            Some(Bar::Under(_)) | None => self.value / floor,
            Some(Bar::Over(_)) => floor / self.value,
        })
    }

    /// `None` without a bar.
    pub(super) fn holds(&self) -> Option<bool> {
        self.bar.map(|bar| bar.holds(self.value))
    }
}

/// Durations of one thing that was done many times.
#[derive(Clone, Debug)]
pub(super) struct Times(Vec<Duration>);

impl Times {
    pub(super) fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The least time that so many percent are not above. Unit: milliseconds.
    pub(super) fn ms(&self, percent: usize) -> f64 {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).map_or(f64::NAN, |time| time.as_secs_f64() * 1_000.0)
    }

    /// How often one of these is longer than one of the others, over all pairs; 50 when nothing tells them apart. Unit:
    /// percent.
    pub(super) fn slower_than(&self, others: &Self) -> f64 {
        let halves = |time: &Duration| {
            let below = others.0.partition_point(|other| other < time);
            let at_most = others.0.partition_point(|other| other <= time);
            below + at_most
        };
        let pairs = 2 * self.0.len() * others.0.len();
        100.0 * self.0.iter().map(halves).sum::<usize>() as f64 / pairs as f64
    }

    /// A percentile as a figure.
    pub(super) fn figure(&self, what: &str, percent: usize, bar: Bar, floor: &Self) -> Figure {
        self.bare(what, percent, bar).floor(floor.ms(percent))
    }

    /// A percentile as a figure that has no floor.
    pub(super) fn bare(&self, what: &str, percent: usize, bar: Bar) -> Figure {
        Figure::new(format!("{what}, p{percent}"), "ms", self.ms(percent), bar).samples(self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(millis: impl Iterator<Item = u64>) -> Times {
        Times::new(millis.map(Duration::from_millis).collect())
    }

    #[test]
    fn percentiles_are_measured_values() {
        let hundred = times((1..=100).rev());
        assert_eq!((hundred.ms(50), hundred.ms(99), hundred.ms(100)), (50.0, 99.0, 100.0));
        let three = times([7, 5, 6].into_iter());
        assert_eq!((three.ms(50), three.ms(99)), (6.0, 7.0));
        assert!(times(std::iter::empty()).ms(50).is_nan());
    }

    #[test]
    fn what_is_slower_is_slower_more_often_than_not() {
        let share = |these: [u64; 3], others: [u64; 3]| {
            times(these.into_iter()).slower_than(&times(others.into_iter()))
        };
        assert_eq!(share([1, 2, 3], [3, 1, 2]), 50.0);
        assert_eq!(share([4, 5, 6], [1, 2, 3]), 100.0);
        assert_eq!(share([1, 1, 1], [1, 1, 1]), 50.0);
        assert!(times(std::iter::empty()).slower_than(&times(1..3)).is_nan());
    }

    #[test]
    fn a_ratio_above_one_is_slower_whatever_the_unit() {
        let slow = Figure::new("latency", "ms", 3.0, Bar::Under(4.0)).floor(1.5);
        let few = Figure::new("throughput", "tasks/s", 500.0, Bar::Over(1_000.0)).floor(1_000.0);
        assert_eq!((slow.ratio(), few.ratio()), (Some(2.0), Some(2.0)));
        assert_eq!((slow.holds(), few.holds()), (Some(true), Some(false)));
        assert_eq!(Figure::new("cost", "ms", 1.0, None).holds(), None);
    }

    #[test]
    fn what_was_not_measured_holds_no_bar() {
        assert_eq!(times(std::iter::empty()).bare("x", 50, Bar::Under(1.0)).holds(), Some(false));
    }
}
