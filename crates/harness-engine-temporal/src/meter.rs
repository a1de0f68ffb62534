//! Counts and logs the workflow tasks that this process fails. The SDK tells of each through its meter, whatever the
//! reason: workflow code that panics, a history that does not fit, a workflow type that nobody registered.

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use temporalio_common::telemetry::metrics::{
    CoreMeter, Counter, CounterBase, Gauge, GaugeF64, Histogram, HistogramDuration, HistogramF64,
    MetricAttributable, MetricAttributes, MetricParameters, NewAttributes, NoOpCoreMeter, UpDownCounter,
};

/// What the SDK calls its counter; a prefix may stand before it.
const FAILED: &str = "workflow_task_execution_failed";

/// How many workflow tasks this process has failed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures(Arc<AtomicU64>);

impl Failures {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Forgets everything but failed workflow tasks.
#[derive(Debug)]
pub(crate) struct Meter(pub(crate) Failures);

impl CoreMeter for Meter {
    fn new_attributes(&self, attributes: NewAttributes) -> MetricAttributes {
        NoOpCoreMeter.new_attributes(attributes)
    }

    fn extend_attributes(&self, existing: MetricAttributes, attributes: NewAttributes) -> MetricAttributes {
        NoOpCoreMeter.extend_attributes(existing, attributes)
    }

    fn counter(&self, params: MetricParameters) -> Counter {
        if params.name.ends_with(FAILED) {
            Counter::new(Arc::new(self.0.clone()))
        } else {
            NoOpCoreMeter.counter(params)
        }
    }

    fn histogram(&self, params: MetricParameters) -> Histogram {
        NoOpCoreMeter.histogram(params)
    }

    fn histogram_f64(&self, params: MetricParameters) -> HistogramF64 {
        NoOpCoreMeter.histogram_f64(params)
    }

    fn histogram_duration(&self, params: MetricParameters) -> HistogramDuration {
        NoOpCoreMeter.histogram_duration(params)
    }

    fn gauge(&self, params: MetricParameters) -> Gauge {
        NoOpCoreMeter.gauge(params)
    }

    fn gauge_f64(&self, params: MetricParameters) -> GaugeF64 {
        NoOpCoreMeter.gauge_f64(params)
    }

    fn up_down_counter(&self, params: MetricParameters) -> UpDownCounter {
        NoOpCoreMeter.up_down_counter(params)
    }
}

impl MetricAttributable<Box<dyn CounterBase>> for Failures {
    fn with_attributes(&self, attributes: &MetricAttributes) -> Result<Box<dyn CounterBase>, Box<dyn Error>> {
        let labels = if let MetricAttributes::NoOp(labels) = attributes { Some(labels) } else { None };
        let label = |key: &str| labels.and_then(|labels| labels.get(key).cloned()).unwrap_or_default();
        Ok(Box::new(Labelled {
            failures: self.clone(),
            workflow_type: label("workflow_type"),
            reason: label("failure_reason"),
        }))
    }
}

/// The counter for one workflow type and one reason.
struct Labelled {
    failures: Failures,
    workflow_type: String,
    reason: String,
}

impl CounterBase for Labelled {
    fn adds(&self, value: u64) {
        let (workflow_type, reason) = (&self.workflow_type, &self.reason);
        let total = self.failures.0.fetch_add(value, Ordering::Relaxed).saturating_add(value);
        tracing::error!(workflow_type, reason, total, "a Temporal workflow task failed; it is tried again");
    }
}
