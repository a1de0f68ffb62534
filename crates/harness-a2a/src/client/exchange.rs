//! One request and its response, in either binding.

use std::sync::atomic::Ordering;

use ::http::HeaderValue;
use bytes::Bytes;
use reqwest::{Method, Url};
use serde_json::{Value, json};

use super::{AgentClient, ClientError, card::Binding, http, operation::Operation};

/// How results are wrapped.
#[derive(Clone, Debug)]
pub(super) enum Framing {
    /// In a JSON-RPC response with this id.
    JsonRpc { id: Value },
    /// Not at all.
    Bare,
}

impl Framing {
    /// The result in a body, or in the data of an event.
    pub(super) fn result(&self, bytes: &[u8]) -> Result<Value, ClientError> {
        match self {
            Self::JsonRpc { id } => http::rpc_result(bytes, id),
            Self::Bare => http::bare_result(bytes),
        }
    }
}

/// A request, written.
#[derive(Clone)]
struct Written {
    method: Method,
    url: Url,
    body: Bytes,
    content_type: Option<&'static str>,
    framing: Framing,
}

impl AgentClient {
    /// Sends a request; the response if its status is success.
    pub(super) async fn exchange(
        &self,
        operation: Operation,
        params: Value,
        after: Option<u64>,
    ) -> Result<(Framing, reqwest::Response), ClientError> {
        let written = self.write(operation, params);
        let retry = (operation == Operation::SubscribeToTask && written.method == Method::GET)
            .then(|| Written { method: Method::POST, ..written.clone() });
        match (self.send_written(written, after).await, retry) {
            // Agents that follow the prose of the specification instead of its annotations.
            (Err(ClientError::Status { status: 405, .. }), Some(retry)) => {
                self.send_written(retry, after).await
            }
            (result, _) => result,
        }
    }

    async fn send_written(
        &self,
        written: Written,
        after: Option<u64>,
    ) -> Result<(Framing, reqwest::Response), ClientError> {
        let mut headers = self.headers.clone();
        if let Some(content_type) = written.content_type {
            headers.insert("content-type", HeaderValue::from_static(content_type));
        }
        if let Some(seq) = after {
            headers.insert("last-event-id", HeaderValue::from(seq));
        }
        if let Some(own) = &self.shared.options.own_requests {
            let (name, value) = own.proof(written.method.as_str(), &written.url, &written.body);
            headers.insert(name, value);
        }
        let request = self.shared.http.request(written.method, written.url).headers(headers);
        let sent = request.body(written.body).send().await.map_err(ClientError::unreachable)?;
        let response = http::accepted(sent, self.shared.options.limits.response_bytes_max).await?;
        Ok((written.framing, response))
    }

    fn write(&self, operation: Operation, mut params: Value) -> Written {
        let endpoint = &self.shared.endpoint;
        match endpoint.binding {
            Binding::JsonRpc => {
                if let (Some(tenant), Value::Object(fields)) = (&endpoint.tenant, &mut params) {
                    fields.entry("tenant").or_insert_with(|| tenant.as_str().into());
                }
                let id = Value::from(self.shared.next_id.fetch_add(1, Ordering::Relaxed));
                let body =
                    json!({"jsonrpc": "2.0", "id": id, "method": operation.method(), "params": params});
                Written {
                    method: Method::POST,
                    url: endpoint.url.clone(),
                    body: body.to_string().into(),
                    content_type: Some("application/json"),
                    framing: Framing::JsonRpc { id },
                }
            }
            Binding::HttpJson => {
                let request = operation.rest(&endpoint.url, endpoint.tenant.as_deref(), params);
                Written {
                    method: request.method,
                    url: request.url,
                    content_type: request.body.is_some().then_some("application/a2a+json"),
                    body: request.body.map(|body| body.to_string().into()).unwrap_or_default(),
                    framing: Framing::Bare,
                }
            }
        }
    }
}
