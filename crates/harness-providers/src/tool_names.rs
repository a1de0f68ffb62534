//! Tool names on the wire: providers allow letters, digits, `_` and `-`, registry names hold `/` and `.` too.

use std::collections::HashMap;

/// Characters of a wire name before a number is added; providers allow 64 in all.
const CHARS_MAX: usize = 56;

/// A one-to-one mapping between the registry names of one request and their wire names.
///
/// The same names in the same order give the same mapping, so a conversation keeps its bytes from turn to turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolNames {
    to_wire: HashMap<String, String>,
    to_registry: HashMap<String, String>,
}

impl ToolNames {
    /// Maps names in order; the first of two that look alike keeps the plain form. Repeats change nothing.
    pub(crate) fn new<'a>(registry_names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut names = Self::default();
        for registry in registry_names {
            if names.to_wire.contains_key(registry) {
                continue;
            }
            let plain = plain_form(registry);
            let (mut wire, mut number) = (plain.clone(), 2_u64);
            while names.to_registry.contains_key(&wire) {
                wire = format!("{plain}_{number}");
                number += 1;
            }
            names.to_registry.insert(wire.clone(), registry.to_owned());
            names.to_wire.insert(registry.to_owned(), wire);
        }
        names
    }

    /// The wire name of a registry name of this request.
    pub(crate) fn wire<'a>(&'a self, registry: &'a str) -> &'a str {
        self.to_wire.get(registry).map_or(registry, String::as_str)
    }

    /// The registry name of a wire name; one that is not of this request stays as it is.
    pub(crate) fn registry<'a>(&'a self, wire: &'a str) -> &'a str {
        self.to_registry.get(wire).map_or(wire, String::as_str)
    }
}

fn plain_form(registry: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let plain: String = registry.chars().take(CHARS_MAX).map(|c| if allowed(c) { c } else { '_' }).collect();
    if plain.is_empty() { "_".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_made_valid_and_mapped_back() {
        let names = ToolNames::new(["demo-support/orders.get_order", "create_plan"]);
        assert_eq!(names.wire("demo-support/orders.get_order"), "demo-support_orders_get_order");
        assert_eq!(names.registry("demo-support_orders_get_order"), "demo-support/orders.get_order");
        assert_eq!(names.wire("create_plan"), "create_plan");
        assert_eq!(names.registry("no_such_tool"), "no_such_tool");
    }

    #[test]
    fn names_that_look_alike_stay_apart() {
        let long = "x".repeat(80);
        let longer = "x".repeat(81);
        let all = ["a.b", "a/b", "a_b", "a_b_2", "", "ü", &long, &longer, "a.b"];
        let names = ToolNames::new(all);
        let wires: HashSet<&str> = all.iter().map(|name| names.wire(name)).collect();
        assert_eq!(wires.len(), all.len() - 1, "{wires:?}");
        for name in all {
            let wire = names.wire(name);
            assert_eq!(names.registry(wire), name);
            assert!(!wire.is_empty() && wire.len() <= 64, "{wire}");
            assert!(wire.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)), "{wire}");
        }
        assert_eq!((names.wire("a.b"), names.wire("a/b")), ("a_b", "a_b_2"));
    }
}
