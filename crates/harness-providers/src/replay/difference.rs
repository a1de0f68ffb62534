//! Where two JSON values differ, for people.

use serde_json::Value;

/// Characters of a value that are shown.
const SHOWN_CHARS: usize = 60;
/// Characters before the place where two texts part that are shown.
const BEFORE_CHARS: usize = 20;

/// The places where two values differ.
#[derive(Debug, Default)]
pub(super) struct Differences {
    /// The first of them.
    pub(super) shown: Vec<String>,
    /// How many there are; items that only one side has count each.
    pub(super) count: usize,
}

impl Differences {
    /// Compares what is asked with what was recorded and keeps the first `shown_max` places.
    pub(super) fn of(recorded: &Value, asked: &Value, shown_max: usize) -> Self {
        let mut found = Self::default();
        found.walk(recorded, asked, &mut String::new(), shown_max);
        found
    }

    fn walk(&mut self, recorded: &Value, asked: &Value, path: &mut String, shown_max: usize) {
        match (recorded, asked) {
            _ if recorded == asked => {}
            (Value::Object(left), Value::Object(right)) => {
                let added = right.keys().filter(|key| !left.contains_key(*key));
                for key in left.keys().chain(added) {
                    let [left, right] = [left, right].map(|side| side.get(key).unwrap_or(&Value::Null));
                    step(path, key, |path| self.walk(left, right, path, shown_max));
                }
            }
            (Value::Array(left), Value::Array(right)) => {
                for (at, (left, right)) in left.iter().zip(right).enumerate() {
                    step(path, &at.to_string(), |path| self.walk(left, right, path, shown_max));
                }
                let (left, right) = (left.len(), right.len());
                if left != right {
                    self.add(left.abs_diff(right), shown_max, || {
                        format!("{path}: {right} items, recorded {left}")
                    });
                }
            }
            (Value::String(left), Value::String(right)) => self.add(1, shown_max, || {
                let (at, left, right) = parting(left, right);
                format!("{path}: {right:?}, recorded {left:?} (from character {at})")
            }),
            _ => self.add(1, shown_max, || format!("{path}: {}, recorded {}", shown(asked), shown(recorded))),
        }
    }

    fn add(&mut self, count: usize, shown_max: usize, text: impl FnOnce() -> String) {
        self.count += count;
        if self.shown.len() < shown_max {
            self.shown.push(text());
        }
    }
}

fn step(path: &mut String, name: &str, then: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push('/');
    path.push_str(name);
    then(path);
    path.truncate(length);
}

/// Where two texts part, and what stands around that place in each.
fn parting(left: &str, right: &str) -> (usize, String, String) {
    let at = left.chars().zip(right.chars()).take_while(|(left, right)| left == right).count();
    let from = at.saturating_sub(BEFORE_CHARS);
    let around = |text: &str| text.chars().skip(from).take(SHOWN_CHARS).collect::<String>();
    (at, around(left), around(right))
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= SHOWN_CHARS {
        return text;
    }
    text.chars().take(SHOWN_CHARS).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_place_is_named() {
        let recorded = json!({"a": {"b": [1, "a long text that parts here"], "gone": true}, "c": null});
        let asked = json!({"a": {"b": [2, "a long text that parts there", 3]}, "c": null, "d": {"e": 1}});
        let found = Differences::of(&recorded, &asked, 10);
        assert_eq!(
            found.shown,
            [
                "/a/b/0: 2, recorded 1",
                r#"/a/b/1: "ong text that parts there", recorded "ong text that parts here" (from character 23)"#,
                "/a/b: 3 items, recorded 2",
                "/a/gone: null, recorded true",
                r#"/d: {"e":1}, recorded null"#,
            ]
        );
        assert_eq!(found.count, 5);
        assert_eq!(Differences::of(&recorded, &asked, 2).shown.len(), 2);
        assert_eq!(Differences::of(&recorded, &recorded, 2).count, 0);
        assert_eq!(Differences::of(&json!([1]), &json!([2, 3, 4]), 2).count, 3);
        let long = json!("x".repeat(10_000));
        assert!(Differences::of(&json!(1), &long, 1).shown[0].chars().count() < 100);
    }
}
