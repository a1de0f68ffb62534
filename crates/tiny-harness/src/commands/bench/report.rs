//! The table, and the same for programs.

use serde::Serialize;
use serde_json::json;

use super::{
    figure::{Bar, Figure},
    machine::{self, Machine},
};
use crate::failure::Failure;

/// What became of a row.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Measured(Vec<Figure>),
    Failed { name: &'static str, reason: String },
}

impl Outcome {
    pub(super) fn failed(name: &'static str, failure: &Failure) -> Self {
        Self::Failed { name, reason: failure.lines.join("; ") }
    }
}

/// Everything that a run found out.
#[derive(Debug)]
pub(super) struct Report {
    machine: Machine,
    quick: bool,
    load_after: f64,
    outcomes: Vec<Outcome>,
}

impl Report {
    pub(super) fn new(machine: Machine, quick: bool, outcomes: Vec<Outcome>) -> Self {
        Self { machine, quick, load_after: machine::load(), outcomes }
    }

    /// Whether every row was measured.
    pub(super) fn is_whole(&self) -> bool {
        self.outcomes.iter().all(|outcome| matches!(outcome, Outcome::Measured(_)))
    }

    /// For people; valid Markdown.
    pub(super) fn table(&self) -> String {
        let titles = ["what", "measured", "bar", "floor", "x floor", "", "n"].map(str::to_owned);
        let mut rows = vec![titles];
        for outcome in &self.outcomes {
            match outcome {
                Outcome::Measured(figures) => rows.extend(figures.iter().map(cells)),
                Outcome::Failed { name, .. } => {
                    let dash = || "-".to_owned();
                    rows.push([
                        (*name).to_owned(),
                        dash(),
                        dash(),
                        dash(),
                        dash(),
                        "FAILED".to_owned(),
                        dash(),
                    ]);
                }
            }
        }
        let mut text = aligned(&rows);
        for outcome in &self.outcomes {
            if let Outcome::Failed { name, reason } = outcome {
                text.push_str(&format!("\n{name}: {reason}\n"));
            }
        }
        if self.quick {
            text.push_str("\nA quick run: too few measurements to say anything about the bars.\n");
        }
        text
    }

    /// For programs.
    pub(super) fn json(&self) -> String {
        let mut figures = Vec::new();
        let mut failed = Vec::new();
        for outcome in &self.outcomes {
            match outcome {
                Outcome::Measured(measured) => figures.extend(measured.iter().map(|figure| {
                    json!({"what": figure.what, "unit": figure.unit, "value": figure.value, "bar": figure.bar,
                        "floor": figure.floor, "times_floor": figure.ratio(), "samples": figure.samples,
                        "holds": figure.holds()})
                })),
                Outcome::Failed { name, reason } => failed.push(json!({"name": name, "reason": reason})),
            }
        }
        let report = json!({"machine": self.machine, "quick": self.quick, "load_after": self.load_after,
            "figures": figures, "failed": failed});
        format!("{report:#}\n")
    }
}

fn cells(figure: &Figure) -> [String; 7] {
    let bar = match figure.bar {
        Some(Bar::Under(bar)) => format!("< {}", number(bar)),
        Some(Bar::Over(bar)) => format!("> {}", number(bar)),
        None => "-".to_owned(),
    };
    [
        figure.what.clone(),
        format!("{} {}", number(figure.value), figure.unit),
        bar,
        figure.floor.map_or_else(|| "-".to_owned(), number),
        figure.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.1}")),
        figure.holds().map_or("", |holds| if holds { "OK" } else { "MISS" }).to_owned(),
        figure.samples.to_string(),
    ]
}

/// Three digits that count.
fn number(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn aligned(rows: &[[String; 7]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        for (column, cell) in row.iter().enumerate() {
            let fill = " ".repeat(widths[column] - cell.chars().count());
            // Words to the left, numbers to the right.
            text.push_str(&if column == 0 { format!("| {cell}{fill} ") } else { format!("| {fill}{cell} ") });
        }
        text.push_str("|\n");
        if index == 0 {
            for (column, width) in widths.iter().enumerate() {
                let line = "-".repeat(width + 1);
                text.push_str(&if column == 0 { format!("|{line}-") } else { format!("|{line}:") });
            }
            text.push_str("|\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_markdown_and_says_what_misses() {
        let rows = [
            ["what", "measured", "bar", "floor", "x floor", "", "n"].map(str::to_owned),
            cells(&Figure::new("latency", "ms", 12.345, Bar::Under(3.0)).floor(1.5).samples(7)),
        ];
        assert_eq!(
            aligned(&rows),
            "| what    | measured |    bar | floor | x floor |      | n |\n\
             |---------|---------:|-------:|------:|--------:|-----:|--:|\n\
             | latency |  12.3 ms | < 3.00 |  1.50 |     8.2 | MISS | 7 |\n"
        );
    }
}
