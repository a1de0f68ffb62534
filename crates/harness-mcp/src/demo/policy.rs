//! The policy server: what the shop does in which case.

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
};
use serde::Deserialize;
use serde_json::json;

use super::arguments::{read, reads_only, tool};

const POLICIES: [(&str, &str); 3] = [
    (
        "damaged on arrival",
        "If an item arrives damaged and the customer tells us within 30 days of delivery, the customer chooses: a \
         replacement free of charge, or a refund of the full price. Nothing has to be sent back. Ask before acting.",
    ),
    (
        "late delivery",
        "If an order is not delivered within 14 days, the customer may cancel it for a full refund. Otherwise apologise \
         and give the expected date.",
    ),
    (
        "warranty",
        "Until the warranty date of the order, a defect in normal use is covered: one replacement free of charge. After \
         that date, offer 20 percent off a new item.",
    ),
];

const UNKNOWN: &str = "no policy on file; escalate to a human";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LookupArguments {
    topic: String,
}

/// The server.
pub(super) struct Policy;

impl ServerHandler for Policy {
    fn get_info(&self) -> ServerConfig {
        let server = Implementation::new("policy", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build()).with_server_info(server)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let topics: Vec<&str> = POLICIES.iter().map(|(topic, _)| *topic).collect();
        let description = format!("One of: {}", topics.join(", "));
        let lookup = tool(
            "lookup",
            "Looks up the policy of the shop on a topic.",
            json!({ "topic": { "type": "string", "description": description } }),
        );
        Ok(ListToolsResult { tools: vec![reads_only(lookup)], ..ListToolsResult::default() })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name != "lookup" {
            return Err(ErrorData::invalid_params("there is no such tool", None));
        }
        let wanted: LookupArguments = read(&request.arguments.unwrap_or_default())?;
        let topic = wanted.topic.trim().to_lowercase();
        let text = POLICIES.iter().find(|(name, _)| *name == topic).map_or(UNKNOWN, |(_, text)| text);
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}
