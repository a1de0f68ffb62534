//! The conversation of a task in the store: a chain of manifests that name items.

use harness_agent::{
    InvokeModelInput,
    context::{LINKS_MAX, Manifest},
};
use harness_model::{BlockRef, ItemBody, ItemPart, ItemRef, StoredItem};
use harness_ports::{ActivityFailure, Store};

use crate::{
    blocks::{self, Keep},
    failure,
};

/// Everything the model has been shown and is to be shown now.
#[derive(Debug)]
pub(super) struct Conversation {
    /// The items, oldest first.
    pub(super) items: Vec<StoredItem>,
    refs: Vec<ItemRef>,
    /// Links of the manifest the conversation was loaded from.
    depth: u32,
}

impl Conversation {
    /// Loads the items of the manifest and the fresh ones.
    pub(super) async fn load(store: &dyn Store, input: &InvokeModelInput) -> Result<Self, ActivityFailure> {
        let links = links(store, input.manifest.as_ref()).await?;
        let depth = links.first().map_or(0, |newest| newest.depth);
        let mut refs: Vec<ItemRef> = links.into_iter().rev().flat_map(|link| link.items).collect();
        refs.extend(input.fresh.iter().cloned());
        let items = blocks::all(refs.iter().map(|item| load_item(store, item)).collect()).await?;
        Ok(Self { items, refs, depth })
    }

    /// Keeps the manifest of the whole conversation: one link more, or all of it anew when the chain is long.
    pub(super) fn extended(
        &self,
        input: &InvokeModelInput,
        keep: &mut Keep,
    ) -> Result<BlockRef, ActivityFailure> {
        let manifest = match &input.manifest {
            Some(base) if input.fresh.is_empty() => return Ok(base.clone()),
            Some(base) if self.depth + 1 < LINKS_MAX => {
                Manifest { base: Some(base.clone()), depth: self.depth + 1, items: input.fresh.clone() }
            }
            Some(_) | None => Manifest { base: None, depth: 0, items: self.refs.clone() },
        };
        keep.json(&manifest)
    }

    /// The newest words of a person, as the model reads them.
    pub(super) fn last_words(&self) -> String {
        let spoken = self.items.iter().rev().find_map(|item| match item {
            StoredItem::User { parts, source: None } => parts.iter().find_map(|part| match part {
                ItemPart::Text(text) => Some(text),
                ItemPart::Data(_) | ItemPart::Binary { .. } | ItemPart::Link { .. } => None,
            }),
            StoredItem::User { .. } | StoredItem::Model(_) | StoredItem::ToolResult { .. } => None,
        });
        let Some(spoken) = spoken else { return String::new() };
        let words = spoken.strip_prefix('[').and_then(|rest| rest.split_once("] ")).map(|(_, words)| words);
        words.unwrap_or(spoken).to_owned()
    }
}

/// The links of a manifest, newest first.
async fn links(store: &dyn Store, newest: Option<&BlockRef>) -> Result<Vec<Manifest>, ActivityFailure> {
    let mut links: Vec<Manifest> = Vec::new();
    let mut next = newest.cloned();
    while let Some(block) = next {
        if links.len() > LINKS_MAX as usize {
            return Err(failure::state_invalid("the conversation of the task has too many links"));
        }
        let link: Manifest = blocks::json(store, &block).await?;
        next = link.base.clone();
        links.push(link);
    }
    Ok(links)
}

async fn load_item(store: &dyn Store, item: &ItemRef) -> Result<StoredItem, ActivityFailure> {
    match &item.body {
        ItemBody::Inline(item) => Ok((**item).clone()),
        ItemBody::Block(block) => blocks::json(store, block).await,
    }
}
