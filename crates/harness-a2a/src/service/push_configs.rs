//! The operations on push notification configurations.

use std::sync::Arc;

use a2a::{
    AuthenticationInfo, DeleteTaskPushNotificationConfigRequest, GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest, ListTaskPushNotificationConfigsResponse,
    TaskPushNotificationConfig,
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use harness_model::{BlockId, MessageId, ParticipantId, TaskId, limits};
use harness_ports::TaskFields;

use super::{A2aService, Call, Inner, inbound::check_id};
use crate::{
    A2aError, ErrorKind,
    push::{Origin, Push, Sealing},
};

/// Configurations that one participant may have for one task.
const CONFIGS_MAX: usize = 16;
/// Characters of a token, and of credentials.
const SECRET_CHARS_MAX: usize = 4_096;
/// Configurations of a page when a listing does not say how many, and at most.
const PAGE_SIZE_DEFAULT: i32 = 50;
const PAGE_SIZE_MAX: i32 = 100;

/// A configuration that was checked and has no place yet.
pub(super) struct Wanted {
    id: Option<String>,
    sealing: Sealing,
}

impl A2aService {
    /// Registers a receiver for what happens to a task from now on. One with the same id is replaced.
    pub(crate) async fn create_push_config(
        &self,
        call: &Call,
        request: TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig, A2aError> {
        let inner = &self.inner;
        let push = inner.push()?;
        let (snapshot, owner) = inner.visible_task(call, &request.task_id, TaskFields::BARE).await?;
        let wanted = check(push, request)?;
        let origin = Origin {
            config_id: wanted.id.clone().unwrap_or_else(|| inner.ids.fresh()),
            task_id: snapshot.record.task_id,
            owner,
            message_id: None,
            after: Some(snapshot.last_seq),
        };
        inner.keep_push_config(push, wanted, origin).await
    }

    /// A configuration of the caller.
    pub(crate) async fn get_push_config(
        &self,
        call: &Call,
        request: GetTaskPushNotificationConfigRequest,
    ) -> Result<TaskPushNotificationConfig, A2aError> {
        let push = self.inner.push()?;
        let (task_id, owner) = self.inner.own_task(call, &request.task_id).await?;
        let configs = push.of_owner(&*self.inner.store, &task_id, &owner).await?;
        let found = configs.into_iter().find(|kept| kept.config.config_id == request.id);
        found.map(|kept| kept.config.to_wire()).ok_or_else(no_such_config)
    }

    /// The configurations that the caller has for a task.
    pub(crate) async fn list_push_configs(
        &self,
        call: &Call,
        request: ListTaskPushNotificationConfigsRequest,
    ) -> Result<ListTaskPushNotificationConfigsResponse, A2aError> {
        let push = self.inner.push()?;
        let (task_id, owner) = self.inner.own_task(call, &request.task_id).await?;
        // Peers that read the wire's zero as a value send it for "no size".
        let page_size = request.page_size.filter(|size| *size != 0).unwrap_or(PAGE_SIZE_DEFAULT);
        let page_size = usize::try_from(page_size.min(PAGE_SIZE_MAX))
            .map_err(|_| A2aError::invalid_field("pageSize", "pageSize must not be negative"))?;
        let after = request.page_token.filter(|token| !token.is_empty());
        let after = after.as_deref().map(read_page_token).transpose()?;
        let configs = push.of_owner(&*self.inner.store, &task_id, &owner).await?;
        let rest = configs.into_iter().map(|kept| kept.config);
        let mut rest = rest.filter(|config| after.as_ref().is_none_or(|id| config.config_id > *id));
        let page: Vec<_> = rest.by_ref().take(page_size).collect();
        let more = rest.next().is_some();
        let last = page.last().filter(|_| more);
        Ok(ListTaskPushNotificationConfigsResponse {
            next_page_token: last.map(|config| BASE64_URL_SAFE_NO_PAD.encode(&config.config_id)),
            configs: page.iter().map(|config| config.to_wire()).collect(),
        })
    }

    /// Removes a configuration; removing it again is fine.
    pub(crate) async fn delete_push_config(
        &self,
        call: &Call,
        request: DeleteTaskPushNotificationConfigRequest,
    ) -> Result<(), A2aError> {
        let push = self.inner.push()?;
        let (task_id, owner) = self.inner.own_task(call, &request.task_id).await?;
        let configs = push.of_owner(&*self.inner.store, &task_id, &owner).await?;
        match configs.into_iter().find(|kept| kept.config.config_id == request.id) {
            Some(kept) => Ok(push.delete(&self.inner, kept).await?),
            None => Ok(()),
        }
    }
}

impl Inner {
    /// The sender of push notifications.
    fn push(&self) -> Result<&Push, A2aError> {
        self.push.as_ref().ok_or_else(|| {
            let text = "the agent sends no push notifications";
            A2aError::new(ErrorKind::PushNotificationNotSupported, text)
        })
    }

    /// The configuration that comes with a message, checked before the message is accepted.
    pub(super) fn wanted_push(
        &self,
        config: Option<TaskPushNotificationConfig>,
    ) -> Result<Option<Wanted>, A2aError> {
        config.map(|config| check(self.push()?, config)).transpose()
    }

    /// Registers the receiver that came with a message, for the consequences of that message. Repeating the message
    /// changes nothing, and repairs what was cut off between the message and this.
    pub(super) async fn keep_wanted_push(
        self: &Arc<Self>,
        wanted: Wanted,
        task_id: &TaskId,
        sender: ParticipantId,
        message_id: MessageId,
        after: Option<u64>,
    ) -> Result<(), A2aError> {
        let push = self.push()?;
        let seed = serde_json::json!(["push", self.store.install_id(), task_id, sender, message_id]);
        let derived = || BlockId::of(seed.to_string().as_bytes()).as_str()[..32].to_owned();
        let config_id = wanted.id.clone().unwrap_or_else(derived);
        let configs = push.of_owner(&*self.store, task_id, &sender).await?;
        let known = configs.iter().find(|kept| kept.config.config_id == config_id);
        if known.is_some_and(|kept| kept.config.origin.as_ref() == Some(&message_id)) {
            return Ok(());
        }
        let task_id = task_id.clone();
        let origin = Origin { task_id, config_id, owner: sender, message_id: Some(message_id), after };
        self.keep_push_config(push, wanted, origin).await.map(drop)
    }

    async fn keep_push_config(
        self: &Arc<Self>,
        push: &Push,
        wanted: Wanted,
        origin: Origin,
    ) -> Result<TaskPushNotificationConfig, A2aError> {
        let known = push.of_owner(&*self.store, &origin.task_id, &origin.owner).await?;
        let replaces = known.iter().any(|kept| kept.config.config_id == origin.config_id);
        if !replaces && known.len() >= CONFIGS_MAX {
            let text = format!("a participant has at most {CONFIGS_MAX} push configurations for a task");
            return Err(A2aError::invalid_params(text));
        }
        if !replaces && !push.has_room() {
            let text = "the agent follows too many tasks for push notifications; subscribe, or try later";
            return Err(A2aError::new(ErrorKind::Unavailable, text));
        }
        let config = wanted.sealing.seal(&push.key, origin)?;
        let shown = config.to_wire();
        push.put(self, config).await?;
        Ok(shown)
    }

    async fn own_task(&self, call: &Call, task_id: &str) -> Result<(TaskId, ParticipantId), A2aError> {
        let (snapshot, owner) = self.visible_task(call, task_id, TaskFields::BARE).await?;
        Ok((snapshot.record.task_id, owner))
    }
}

/// Checks a configuration from the wire.
fn check(push: &Push, config: TaskPushNotificationConfig) -> Result<Wanted, A2aError> {
    let url = push.guard.check(&config.url).map_err(|reason| {
        A2aError::invalid_field("url", format!("the agent does not call this URL: {reason}"))
    })?;
    let id = config.id.filter(|id| !id.is_empty());
    if let Some(id) = &id {
        check_id("id", id)?;
    }
    let token = config.token.filter(|token| !token.is_empty());
    if let Some(token) = &token {
        check_secret("token", token)?;
    }
    let mut authentication = config.authentication.filter(|info| !info.scheme.is_empty());
    if let Some(AuthenticationInfo { scheme, credentials }) = &mut authentication {
        if scheme.len() > limits::ID_CHARS_MAX || !scheme.bytes().all(is_token_char) {
            let text = "authentication.scheme must be the name of an HTTP authentication scheme";
            return Err(A2aError::invalid_field("authentication.scheme", text));
        }
        *credentials = credentials.take().filter(|text| !text.is_empty());
        if let Some(text) = credentials {
            check_secret("authentication.credentials", text)?;
        }
    }
    Ok(Wanted { id, sealing: Sealing::new(url.to_string(), token, authentication) })
}

/// Checks a text that travels in a header. Its value is never repeated.
fn check_secret(field: &str, text: &str) -> Result<(), A2aError> {
    if text.len() > SECRET_CHARS_MAX || !text.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        let text = format!("{field} must have at most {SECRET_CHARS_MAX} printable ASCII characters");
        return Err(A2aError::invalid_field(field, text));
    }
    Ok(())
}

/// Source: RFC 9110 section 5.6.2.
fn is_token_char(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn read_page_token(token: &str) -> Result<String, A2aError> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).ok();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| A2aError::invalid_field("pageToken", "pageToken is not one this agent gave out"))
}

fn no_such_config() -> A2aError {
    A2aError::new(ErrorKind::TaskNotFound, "the task has no such push configuration")
}
