//! The items of an output, from events that arrive in any order and with more or less in them.

use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use super::wire::{Event, Item};
use crate::{
    calls::{self, CallsError, arguments_text},
    wire::PieceError,
};

/// Items of one output: calls, and what reasoning and messages stand between them.
const ITEMS_MAX: usize = 4 * harness_model::limits::CALLS_PER_TURN_MAX;

/// The items as far as they are known.
#[derive(Debug, Default)]
pub(super) struct Items {
    slots: Vec<Slot>,
    /// The item that the last event belonged to.
    current: Option<usize>,
}

#[derive(Debug, Default)]
struct Slot {
    index: Option<u64>,
    id: String,
    /// The item as the newest event shows it.
    item: Option<Box<RawValue>>,
    is_done: bool,
    /// Argument text that came in pieces.
    arguments: String,
}

impl Items {
    /// Takes an event that shows an item: when it begins, or when it is done.
    pub(super) fn show(&mut self, event: Event, is_done: bool) -> Result<(), PieceError> {
        let Some(raw) = &event.item else { return Ok(()) };
        let item: Item = serde_json::from_str(raw.get()).map_err(|_| PieceError::Unparseable)?;
        let id = item.id.or(event.item_id).unwrap_or_default();
        let index = event.output_index.as_ref().and_then(Value::as_u64);
        // Some servers give an item another id in every event, others one index to all items: an index alone is believed
        // as long as the item it leads to can take what is shown.
        let takes = |slot: &Slot| if is_done { !slot.is_done } else { slot.item.is_none() };
        let known = match self.by_id(&id) {
            Some(at) => Some(at),
            None if index.is_some() => self.by_index(index).filter(|at| takes(&self.slots[*at])),
            // An end without any name belongs to what began last.
            None if id.is_empty() && is_done => self.current.filter(|at| !self.slots[*at].is_done),
            None => None,
        };
        let at = self.slot(known, &id, index)?;
        let slot = &mut self.slots[at];
        slot.is_done |= is_done;
        slot.item = event.item;
        Ok(())
    }

    /// Takes a piece of the arguments of a call.
    pub(super) fn add_arguments(&mut self, event: &Event) -> Result<(), PieceError> {
        let piece = event.delta.as_ref().and_then(Value::as_str).unwrap_or_default();
        let at = self.owner(event)?;
        let slot = &mut self.slots[at];
        slot.arguments.push_str(piece);
        Ok(calls::check_arguments(&slot.arguments)?)
    }

    /// Takes the whole arguments of a call.
    pub(super) fn set_arguments(&mut self, event: &Event) -> Result<(), PieceError> {
        let at = self.owner(event)?;
        let slot = &mut self.slots[at];
        slot.arguments = arguments_text(event.arguments.as_deref());
        Ok(calls::check_arguments(&slot.arguments)?)
    }

    /// Number of the item that a piece belongs to, when it is known.
    pub(super) fn find(&self, event: &Event) -> Option<usize> {
        let index = event.output_index.as_ref().and_then(Value::as_u64);
        let id = event.item_id.as_deref().unwrap_or_default();
        if id.is_empty() && index.is_none() {
            return self.current;
        }
        self.by_id(id).or_else(|| self.by_index(index))
    }

    /// The items in the order of the output. An item that never ended is made of its pieces.
    pub(super) fn finish(mut self) -> Vec<Box<RawValue>> {
        if self.slots.iter().all(|slot| slot.index.is_some()) {
            self.slots.sort_by_key(|slot| slot.index);
        }
        self.slots.into_iter().filter_map(Slot::into_item).collect()
    }

    /// The item that a piece of a call belongs to.
    fn owner(&mut self, event: &Event) -> Result<usize, PieceError> {
        let index = event.output_index.as_ref().and_then(Value::as_u64);
        self.slot(self.find(event), event.item_id.as_deref().unwrap_or_default(), index)
    }

    fn by_id(&self, id: &str) -> Option<usize> {
        if id.is_empty() { None } else { self.slots.iter().rposition(|slot| slot.id == id) }
    }

    fn by_index(&self, index: Option<u64>) -> Option<usize> {
        index.and_then(|_| self.slots.iter().rposition(|slot| slot.index == index))
    }

    fn slot(&mut self, known: Option<usize>, id: &str, index: Option<u64>) -> Result<usize, PieceError> {
        let at = match known {
            Some(at) => at,
            None if self.slots.len() >= ITEMS_MAX => return Err(CallsError::TooMany.into()),
            None => {
                self.slots.push(Slot { index, id: id.to_owned(), ..Slot::default() });
                self.slots.len() - 1
            }
        };
        self.current = Some(at);
        Ok(at)
    }
}

impl Slot {
    fn into_item(self) -> Option<Box<RawValue>> {
        let item = self.item?;
        if self.is_done || self.arguments.is_empty() {
            return Some(item);
        }
        let mut fields: Value = serde_json::from_str(item.get()).ok()?;
        fields.as_object_mut()?.insert("arguments".to_owned(), json!(self.arguments));
        to_raw_value(&fields).ok()
    }
}
