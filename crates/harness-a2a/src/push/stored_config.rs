//! A push notification configuration as it is kept. The form is versioned and never reinterpreted.

use a2a::{AuthenticationInfo, TaskPushNotificationConfig};
use harness_model::{MessageId, ParticipantId, Secret, TaskId};
use harness_ports::{Record, RecordKind, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{A2aError, PushKey, push_key::Unsealable};

/// The record's content.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type")]
enum Form {
    #[serde(rename = "push_config.v1")]
    V1(StoredConfig),
}

/// A configuration, its secrets sealed, and how far its deliveries are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredConfig {
    /// The task; kept beside the content.
    #[serde(skip, default = "no_task")]
    pub(crate) task_id: TaskId,
    pub(crate) config_id: String,
    /// Who made it. Nobody else sees it, and it is served only as long as they take part in the task.
    pub(crate) owner: ParticipantId,
    pub(crate) url: String,
    /// Scheme of the `Authorization` header.
    pub(crate) scheme: Option<String>,
    /// [`Secrets`], sealed for this record and this URL.
    sealed: String,
    /// The message it came with.
    pub(crate) origin: Option<MessageId>,
    /// The newest log entry that the receiver has, or does not want.
    pub(crate) delivered: Option<u64>,
    pub(super) state: DeliveryState,
    /// Why it was given up.
    pub(super) failure: Option<String>,
}

/// Where the deliveries of a configuration stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DeliveryState {
    /// There may be more to deliver.
    Active,
    /// The task has ended and the receiver knows it.
    Done,
    /// The receiver could not be reached too often.
    GivenUp,
    /// The owner takes no part in the task any more.
    Revoked,
}

/// What only the receiver may see.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Secrets {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) credentials: Option<String>,
}

/// Who makes a configuration, for which task, and which entries it is about.
pub(crate) struct Origin {
    pub(crate) task_id: TaskId,
    pub(crate) config_id: String,
    pub(crate) owner: ParticipantId,
    pub(crate) message_id: Option<MessageId>,
    /// Entries after this one are delivered; `None`: all of them.
    pub(crate) after: Option<u64>,
}

/// A checked configuration from the wire, on its way into the store.
pub(crate) struct Sealing {
    url: String,
    scheme: Option<String>,
    secrets: Secrets,
}

fn no_task() -> TaskId {
    TaskId::from("")
}

impl Sealing {
    pub(crate) fn new(
        url: String,
        token: Option<String>,
        authentication: Option<AuthenticationInfo>,
    ) -> Self {
        let (scheme, credentials) = match authentication {
            Some(AuthenticationInfo { scheme, credentials }) => (Some(scheme), credentials),
            None => (None, None),
        };
        Self { url, scheme, secrets: Secrets { token, credentials } }
    }

    /// The form that is kept.
    pub(crate) fn seal(self, key: &PushKey, origin: Origin) -> Result<StoredConfig, A2aError> {
        let mut config = StoredConfig {
            task_id: origin.task_id,
            config_id: origin.config_id,
            owner: origin.owner,
            url: self.url,
            scheme: self.scheme,
            sealed: String::new(),
            origin: origin.message_id,
            delivered: origin.after,
            state: DeliveryState::Active,
            failure: None,
        };
        let plain = serde_json::to_vec(&self.secrets).map_err(A2aError::internal)?;
        config.sealed = key.seal(&config.bound_to(), &plain).map_err(A2aError::internal)?;
        Ok(config)
    }
}

impl StoredConfig {
    /// Name of the record of a configuration. The owner is in it, so that two participants may choose the same id.
    fn record_id(&self) -> String {
        format!("{}:{}", self.task_id, json!([self.owner, self.config_id]))
    }

    pub(crate) fn of_record(record: &Record) -> Result<Self, StoreError> {
        let corrupt = |e: serde_json::Error| StoreError::Corrupt {
            what: format!("push notification configuration {:?}: {e}", record.id),
        };
        let Form::V1(mut config) = Form::deserialize(&record.value).map_err(corrupt)?;
        config.task_id = record.task_id.clone();
        Ok(config)
    }

    pub(super) fn to_record(&self) -> Record {
        Record {
            kind: RecordKind::PushConfig,
            id: self.record_id(),
            task_id: self.task_id.clone(),
            value: self.to_value(),
        }
    }

    pub(super) fn to_value(&self) -> Value {
        // Texts and numbers under fixed keys are always JSON.
        serde_json::to_value(Form::V1(self.clone())).unwrap_or_default()
    }

    /// The secrets.
    pub(super) fn open(&self, key: &PushKey) -> Result<Secrets, Unsealable> {
        let plain = key.open(&self.bound_to(), &self.sealed)?;
        serde_json::from_slice(&plain).map_err(|_| Unsealable)
    }

    /// What peers see of it: neither the token nor the credentials.
    pub(crate) fn to_wire(&self) -> TaskPushNotificationConfig {
        TaskPushNotificationConfig {
            url: self.url.clone(),
            id: Some(self.config_id.clone()),
            task_id: self.task_id.as_str().to_owned(),
            token: None,
            authentication: self
                .scheme
                .clone()
                .map(|scheme| AuthenticationInfo { scheme, credentials: None }),
            tenant: None,
        }
    }

    /// A token for one receiver never goes to another one, whoever edits the store.
    fn bound_to(&self) -> String {
        format!("{}\n{}", self.record_id(), self.url)
    }
}

impl Secrets {
    /// The token, for the header.
    pub(super) fn token(&self) -> Option<Secret> {
        self.token.as_deref().map(Secret::new)
    }
}
