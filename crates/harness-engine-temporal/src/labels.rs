//! The search attributes by which an operator finds tasks in Temporal.

use std::{collections::HashMap, time::Duration};

use temporalio_client::{
    Client, WorkflowCountOptions,
    tonic::{Code, IntoRequest},
};
use temporalio_common::{
    protos::temporal::api::{enums::v1::IndexedValueType, operatorservice::v1::AddSearchAttributesRequest},
    search_attributes::{SearchAttributeKey, SearchAttributeUpdate},
};
use tokio::time::Instant;

use crate::{Address, AdminError, connection::connect, protocol::Labels};

const CONTEXT: SearchAttributeKey<String> = SearchAttributeKey::keyword("A2AContextId");
const STATE: SearchAttributeKey<String> = SearchAttributeKey::keyword("A2ATaskState");
const AGENT: SearchAttributeKey<String> = SearchAttributeKey::keyword("TinyHarnessAgent");
/// A registration is known everywhere after some time.
const KNOWN_LIMIT: Duration = Duration::from_secs(10);
const KNOWN_WAIT: Duration = Duration::from_millis(100);

/// What makes the search attributes equal to the labels.
pub(crate) fn updates(labels: &Labels) -> [SearchAttributeUpdate; 3] {
    [
        CONTEXT.value_set(labels.context_id.clone()),
        STATE.value_set(labels.state.clone()),
        AGENT.value_set(labels.agent.clone()),
    ]
}

/// Registers the search attributes in the namespace, and waits until they are known. Ones that are there are left alone.
/// Errors: see [`AdminError`]; a worker goes on without them.
pub async fn ensure_search_attributes(address: &Address) -> Result<(), AdminError> {
    let client = connect(address).await?;
    if are_registered(&client).await {
        return Ok(());
    }
    for name in [CONTEXT.name(), STATE.name(), AGENT.name()] {
        let request = AddSearchAttributesRequest {
            search_attributes: HashMap::from([(name.to_owned(), IndexedValueType::Keyword.into())]),
            namespace: address.namespace.clone(),
        };
        let mut service = client.connection().operator_service();
        match service.add_search_attributes(request.into_request()).await {
            Ok(_) => {}
            Err(status) if status.code() == Code::AlreadyExists => {}
            Err(status) => return Err(AdminError::refused("register search attributes", &status)),
        }
    }
    let begun = Instant::now();
    while !are_registered(&client).await {
        if begun.elapsed() > KNOWN_LIMIT {
            return Err(AdminError::Refused {
                what: "register search attributes",
                reason: "they are not known after 10 s".to_owned(),
            });
        }
        tokio::time::sleep(KNOWN_WAIT).await;
    }
    Ok(())
}

/// Whether the search attributes are there. Setting one that is not would stop a workflow.
pub(crate) async fn are_registered(client: &Client) -> bool {
    let query =
        format!("{} = 'none' AND {} = 'none' AND {} = 'none'", CONTEXT.name(), STATE.name(), AGENT.name());
    client.count_workflows(query, WorkflowCountOptions::default()).await.is_ok()
}
