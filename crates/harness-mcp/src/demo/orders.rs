//! The order server: two orders of one customer, what may be done for them, and a ledger of what was done.

use std::{path::PathBuf, time::Duration};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
        ListToolsResult, MetaObject, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{
    DemoOptions,
    arguments::{key_of, read, reads_only, tool},
    ledger::{Ledger, Once, Recorded},
};

/// While this file exists in the data directory, `get_order` waits.
const SLOW_FILE: &str = "slow-get-order";
const SLOW_POLL: Duration = Duration::from_millis(500);
const SLOW_MAX: Duration = Duration::from_secs(180);
/// Characters of a free text.
const TEXT_CHARS_MAX: usize = 500;

#[derive(Debug, Serialize)]
struct Order {
    order_id: &'static str,
    customer_id: &'static str,
    item: &'static str,
    price_usd: f64,
    ordered: &'static str,
    delivered: Option<&'static str>,
    warranty_until: &'static str,
    address: &'static str,
}

const ORDERS: [Order; 2] = [
    Order {
        order_id: "48213",
        customer_id: "cust-7781",
        item: "Nimbus 900 blender",
        price_usd: 129.0,
        ordered: "2026-09-29",
        delivered: Some("2026-10-06"),
        warranty_until: "2027-10-06",
        address: "14 Harbour Lane, Portsea",
    },
    Order {
        order_id: "48377",
        customer_id: "cust-7781",
        item: "Nimbus travel cup",
        price_usd: 24.0,
        ordered: "2026-10-07",
        delivered: None,
        warranty_until: "2027-10-07",
        address: "3 Quay Street, Portsea",
    },
];

fn order(order_id: &str) -> Option<&'static Order> {
    ORDERS.iter().find(|order| order.order_id == order_id)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OrderArguments {
    order_id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RefundArguments {
    order_id: String,
    amount_usd: f64,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplacementArguments {
    order_id: String,
    address: String,
}

/// The server. `stop` is cancelled when the client is gone.
pub(super) struct Orders {
    slow_file: PathBuf,
    ledger: Ledger,
    stop: CancellationToken,
}

impl Orders {
    pub(super) fn new(options: &DemoOptions, stop: CancellationToken) -> Self {
        let ledger = Ledger::new(&options.data_dir, options.clock.clone());
        Self { slow_file: options.data_dir.join(SLOW_FILE), ledger, stop }
    }

    async fn get_order(&self, call: &Call) -> Result<CallToolResult, ErrorData> {
        let wanted: OrderArguments = read(&call.arguments)?;
        self.record(call, Once::PerCall).await?;
        self.wait_while_slow(&call.cancel).await?;
        let found = match order(&wanted.order_id) {
            Some(order) => serde_json::to_value(order).unwrap_or(Value::Null),
            None => json!({ "order_id": wanted.order_id, "error": "not found" }),
        };
        Ok(CallToolResult::structured(found))
    }

    async fn list_open_orders(&self, call: &Call) -> Result<CallToolResult, ErrorData> {
        let wanted: OrderArguments = read(&call.arguments)?;
        self.record(call, Once::PerCall).await?;
        let customer = order(&wanted.order_id).map(|order| order.customer_id);
        let theirs: Vec<&Order> = ORDERS.iter().filter(|order| Some(order.customer_id) == customer).collect();
        Ok(CallToolResult::success(vec![ContentBlock::json(theirs)?]))
    }

    async fn refund(&self, call: &Call) -> Result<CallToolResult, ErrorData> {
        let wanted: RefundArguments = read(&call.arguments)?;
        check_text("reason", &wanted.reason)?;
        let Some(order) = order(&wanted.order_id) else { return Ok(no_such_order(&wanted.order_id)) };
        if !(wanted.amount_usd > 0.0 && wanted.amount_usd <= order.price_usd) {
            let text = format!(
                "amount_usd must be above 0 and at most {:.2}, the price of the order",
                order.price_usd
            );
            return Err(ErrorData::invalid_params(text, None));
        }
        let text = format!("Refunded {:.2} USD for order {}.", wanted.amount_usd, order.order_id);
        self.act(call, text).await
    }

    async fn ship_replacement(&self, call: &Call) -> Result<CallToolResult, ErrorData> {
        let wanted: ReplacementArguments = read(&call.arguments)?;
        check_text("address", &wanted.address)?;
        let Some(order) = order(&wanted.order_id) else { return Ok(no_such_order(&wanted.order_id)) };
        let text = format!(
            "A replacement {} for order {} ships to {}; tracking NB-{}-R1.",
            order.item, order.order_id, wanted.address, order.order_id
        );
        self.act(call, text).await
    }

    /// Does something that must not be done twice. The line in the ledger is the deed.
    async fn act(&self, call: &Call, confirmation: String) -> Result<CallToolResult, ErrorData> {
        match self.record(call, Once::PerKey).await? {
            Recorded::Added | Recorded::Repeated => {
                Ok(CallToolResult::success(vec![ContentBlock::text(confirmation)]))
            }
            Recorded::KeyTaken => {
                Err(ErrorData::invalid_params("the idempotency key was used for another call", None))
            }
        }
    }

    async fn record(&self, call: &Call, once: Once) -> Result<Recorded, ErrorData> {
        self.ledger.record(&call.tool, &call.arguments, call.key.clone(), once).await.map_err(|error| {
            tracing::warn!(%error, "the ledger cannot be written");
            ErrorData::internal_error("the ledger cannot be written; nothing was done", None)
        })
    }

    async fn wait_while_slow(&self, cancel: &CancellationToken) -> Result<(), ErrorData> {
        let until = Instant::now() + SLOW_MAX;
        while Instant::now() < until && tokio::fs::try_exists(&self.slow_file).await.unwrap_or(false) {
            tokio::select! {
                () = cancel.cancelled() => return Err(stopped()),
                () = self.stop.cancelled() => return Err(stopped()),
                () = sleep(SLOW_POLL) => {}
            }
        }
        Ok(())
    }
}

/// One call, taken apart.
struct Call {
    tool: String,
    arguments: JsonObject,
    key: Option<String>,
    cancel: CancellationToken,
}

impl ServerHandler for Orders {
    fn get_info(&self) -> ServerConfig {
        let server = Implementation::new("orders", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build()).with_server_info(server)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult { tools: tools(), ..ListToolsResult::default() })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = Call {
            tool: request.name.into_owned(),
            arguments: request.arguments.unwrap_or_default(),
            key: key_of(&context.meta),
            cancel: context.ct,
        };
        let result = match call.tool.as_str() {
            "get_order" => self.get_order(&call).await,
            "list_open_orders" => self.list_open_orders(&call).await,
            "refund" => self.refund(&call).await,
            "ship_replacement" => self.ship_replacement(&call).await,
            _ => Err(ErrorData::invalid_params("there is no such tool", None)),
        };
        result.map(CallToolResponse::from)
    }
}

fn tools() -> Vec<Tool> {
    let order_id = json!({ "type": "string", "description": "The number of the order, such as 48213" });
    let text = |description: &str| json!({ "type": "string", "minLength": 1, "maxLength": TEXT_CHARS_MAX, "description": description });
    vec![
        reads_only(tool("get_order", "Looks up one order by its number.", json!({ "order_id": order_id }))),
        reads_only(tool(
            "list_open_orders",
            "Lists all orders of the customer who placed the given order.",
            json!({ "order_id": order_id }),
        )),
        deduplicates(tool(
            "refund",
            "Pays back all or part of the price of an order.",
            json!({
                "order_id": order_id,
                "amount_usd": { "type": "number", "exclusiveMinimum": 0, "description": "How much, in US dollars" },
                "reason": text("Why, for the books"),
            }),
        )),
        deduplicates(tool(
            "ship_replacement",
            "Ships the item of an order once more, free of charge.",
            json!({ "order_id": order_id, "address": text("Where it goes") }),
        )),
    ]
}

fn deduplicates(tool: Tool) -> Tool {
    let mut meta = MetaObject::new();
    meta.insert(harness_model::names::DEDUPLICATES_KEY.to_owned(), Value::Bool(true));
    tool.with_meta(meta)
}

fn check_text(name: &str, text: &str) -> Result<(), ErrorData> {
    if text.trim().is_empty() || text.chars().count() > TEXT_CHARS_MAX {
        return Err(ErrorData::invalid_params(
            format!("{name} must have 1 to {TEXT_CHARS_MAX} characters"),
            None,
        ));
    }
    Ok(())
}

fn no_such_order(order_id: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(format!(
        "there is no order {order_id:?}; nothing was done"
    ))])
}

fn stopped() -> ErrorData {
    ErrorData::internal_error("the call was stopped", None)
}
