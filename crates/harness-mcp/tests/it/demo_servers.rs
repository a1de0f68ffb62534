//! The demo's servers over their wire: tools, data, ledger, and acting once per key.

use std::{fs, path::Path, sync::Arc};

use harness_mcp::demo::{DemoError, DemoOptions, serve_orders, serve_policy};
use harness_model::{Timestamp, names};
use harness_ports::Clock;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
        duplex, split,
    },
    task::JoinHandle,
};

struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_791_000_000_000)
    }
}

/// A client that speaks the wire by hand.
struct Client {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    server: JoinHandle<Result<(), DemoError>>,
    next_id: u64,
}

impl Client {
    async fn orders(data_dir: &Path) -> Self {
        let options = DemoOptions { data_dir: data_dir.to_owned(), clock: Arc::new(FixedClock) };
        Self::greeted(|input, output| serve_orders(options, input, output)).await
    }

    async fn policy() -> Self {
        Self::greeted(serve_policy).await
    }

    async fn greeted<F>(serve: impl FnOnce(ReadHalf<DuplexStream>, WriteHalf<DuplexStream>) -> F) -> Self
    where
        F: Future<Output = Result<(), DemoError>> + Send + 'static,
    {
        let (ours, theirs) = duplex(64 * 1024);
        let (their_input, their_output) = split(theirs);
        #[expect(clippy::disallowed_methods, reason = "the client waits for it in `leave`")]
        let server = tokio::spawn(serve(their_input, their_output));
        let (output, input) = split(ours);
        let mut client = Self { input, output: BufReader::new(output).lines(), server, next_id: 0 };
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info });
        let greeting = client.request("initialize", params).await;
        assert_eq!(greeting["result"]["protocolVersion"], "2025-06-18");
        client.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        client
    }

    async fn write(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn request(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        let answer: Value = serde_json::from_str(&self.output.next_line().await.unwrap().unwrap()).unwrap();
        assert_eq!(answer["id"], id);
        answer
    }

    async fn call(&mut self, tool: &str, arguments: Value, key: Option<&str>) -> Value {
        let mut params = json!({ "name": tool, "arguments": arguments });
        if let Some(key) = key {
            params["_meta"] = json!({ names::IDEMPOTENCY_KEY: key });
        }
        self.request("tools/call", params).await
    }

    /// The text of a result.
    async fn text(&mut self, tool: &str, arguments: Value, key: Option<&str>) -> String {
        let answer = self.call(tool, arguments, key).await;
        assert_ne!(answer["result"]["isError"], true, "{answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    async fn leave(self) {
        drop((self.input, self.output));
        self.server.await.unwrap().unwrap();
    }
}

fn ledger(dir: &TempDir) -> Vec<Value> {
    let text = fs::read_to_string(dir.path().join("orders-ledger.jsonl")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[tokio::test]
async fn the_tools_say_what_may_be_repeated() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::orders(dir.path()).await;
    let answer = client.request("tools/list", json!({})).await;
    let told = |tool: &Value| {
        let hint = |name: &str| tool["annotations"][name].as_bool();
        let name = tool["name"].as_str().unwrap().to_owned();
        (name, hint("readOnlyHint"), hint("idempotentHint"), tool["_meta"][names::DEDUPLICATES_KEY].as_bool())
    };
    let tools: Vec<_> = answer["result"]["tools"].as_array().unwrap().iter().map(told).collect();
    let yes = Some(true);
    assert_eq!(
        tools,
        [
            ("get_order".to_owned(), yes, yes, None),
            ("list_open_orders".to_owned(), yes, yes, None),
            ("refund".to_owned(), None, None, yes),
            ("ship_replacement".to_owned(), None, None, yes),
        ]
    );
    client.leave().await;
}

#[tokio::test]
async fn orders_are_found_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::orders(dir.path()).await;
    let answer = client.call("get_order", json!({"order_id": "48213"}), None).await;
    let order = &answer["result"]["structuredContent"];
    assert_eq!(
        *order,
        json!({
            "order_id": "48213", "customer_id": "cust-7781", "item": "Nimbus 900 blender", "price_usd": 129.0,
            "ordered": "2026-09-29", "delivered": "2026-10-06", "warranty_until": "2027-10-06",
            "address": "14 Harbour Lane, Portsea",
        })
    );
    let text = client.text("get_order", json!({"order_id": "1"}), None).await;
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!({"order_id": "1", "error": "not found"}));
    let listed = client.text("list_open_orders", json!({"order_id": "48377"}), None).await;
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed.iter().map(|order| order["order_id"].clone()).collect::<Vec<_>>(), ["48213", "48377"]);
    assert_eq!(listed[1]["delivered"], Value::Null);
    assert_eq!(client.text("list_open_orders", json!({"order_id": "1"}), None).await, "[]");
    client.leave().await;

    let tools: Vec<_> = ledger(&dir).iter().map(|line| line["tool"].clone()).collect();
    assert_eq!(tools, ["get_order", "get_order", "list_open_orders", "list_open_orders"]);
    assert_eq!(
        ledger(&dir)[0],
        json!({"tool": "get_order", "arguments": {"order_id": "48213"}, "ts": "2026-10-03T04:00:00.000Z"})
    );
}

#[tokio::test]
async fn deeds_are_done_once_per_key_across_processes() {
    let dir = tempfile::tempdir().unwrap();
    let refund = json!({"order_id": "48213", "amount_usd": 129.0, "reason": "arrived broken"});
    let mut first = Client::orders(dir.path()).await;
    let confirmation = first.text("refund", refund.clone(), Some("k1")).await;
    assert_eq!(confirmation, "Refunded 129.00 USD for order 48213.");
    first.leave().await;

    // A process that died in the middle of a line leaves a torn one behind.
    let path = dir.path().join("orders-ledger.jsonl");
    fs::write(&path, [fs::read(&path).unwrap(), br#"{"tool":"refund","argu"#.to_vec()].concat()).unwrap();

    let mut second = Client::orders(dir.path()).await;
    assert_eq!(second.text("refund", refund.clone(), Some("k1")).await, confirmation);
    assert_eq!(ledger(&dir).len(), 1);
    let other =
        second.call("refund", json!({"order_id": "48377", "amount_usd": 1, "reason": "x"}), Some("k1")).await;
    assert_eq!(other["error"]["code"], -32602, "{other}");
    let replacement = json!({"order_id": "48213", "address": "14 Harbour Lane, Portsea"});
    let text = second.text("ship_replacement", replacement, Some("k2")).await;
    assert!(text.contains("NB-48213-R1"), "{text}");
    second.text("refund", refund, None).await;
    second.leave().await;
    let keys: Vec<_> = ledger(&dir).iter().map(|line| line["key"].clone()).collect();
    assert_eq!(keys, [json!("k1"), json!("k2"), Value::Null]);
}

#[tokio::test]
async fn servers_that_act_at_once_share_one_ledger() {
    let dir = tempfile::tempdir().unwrap();
    let refund = json!({"order_id": "48377", "amount_usd": 24.0, "reason": "late"});
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(Client::orders(dir.path()).await);
    }
    let calls = clients.iter_mut().map(|client| async {
        for n in 0..5 {
            client.text("refund", refund.clone(), Some(&format!("k{n}"))).await;
        }
    });
    futures::future::join_all(calls).await;
    let mut keys: Vec<_> = ledger(&dir).iter().map(|line| line["key"].as_str().unwrap().to_owned()).collect();
    keys.sort();
    assert_eq!(keys, ["k0", "k1", "k2", "k3", "k4"]);
}

#[tokio::test]
async fn bad_arguments_are_clean_errors_and_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Client::orders(dir.path()).await;
    let bad = [
        ("get_order", json!({})),
        ("get_order", json!({"order_id": 48213})),
        ("get_order", json!({"order_id": "48213", "extra": true})),
        ("refund", json!({"order_id": "48213", "amount_usd": 130, "reason": "x"})),
        ("refund", json!({"order_id": "48213", "amount_usd": -1, "reason": "x"})),
        ("refund", json!({"order_id": "48213", "amount_usd": 1, "reason": " "})),
        ("ship_replacement", json!({"order_id": "48213", "address": "x".repeat(501)})),
        ("drop_tables", json!({})),
    ];
    for (tool, arguments) in bad {
        let answer = client.call(tool, arguments.clone(), Some("k")).await;
        assert_eq!(answer["error"]["code"], -32602, "{tool} {arguments}: {answer}");
        assert!(!answer["error"]["message"].as_str().unwrap().is_empty());
    }
    let unknown =
        client.call("refund", json!({"order_id": "1", "amount_usd": 1, "reason": "x"}), Some("k")).await;
    assert_eq!(unknown["result"]["isError"], true, "{unknown}");
    assert!(ledger(&dir).is_empty());
    client.leave().await;
}

#[tokio::test]
async fn a_slow_order_waits_for_the_file_to_go_and_ends_with_its_client() {
    let dir = tempfile::tempdir().unwrap();
    let slow = dir.path().join("slow-get-order");
    fs::write(&slow, "").unwrap();
    let mut client = Client::orders(dir.path()).await;
    let waiting = client.text("get_order", json!({"order_id": "48213"}), None);
    let release = async {
        crate::rig::eventually("the call is in the ledger", || ledger(&dir).len() == 1).await;
        fs::remove_file(&slow).unwrap();
    };
    let (text, ()) = tokio::join!(waiting, release);
    assert!(text.contains("Nimbus 900 blender"));

    fs::write(&slow, "").unwrap();
    let call = json!({"jsonrpc": "2.0", "id": 99, "method": "tools/call",
                      "params": {"name": "get_order", "arguments": {"order_id": "48213"}}});
    client.write(&call).await;
    crate::rig::eventually("the call is in the ledger", || ledger(&dir).len() == 2).await;
    let began = tokio::time::Instant::now();
    client.leave().await;
    assert!(began.elapsed() < std::time::Duration::from_secs(2), "it does not wait for the file");
}

#[tokio::test]
async fn policies_are_found_or_escalated() {
    let mut client = Client::policy().await;
    for topic in ["damaged on arrival", "Late delivery ", "warranty"] {
        let text = client.text("lookup", json!({ "topic": topic }), None).await;
        assert!(text.len() > 80, "{topic}: {text}");
    }
    let unknown = client.text("lookup", json!({"topic": "ransom"}), None).await;
    assert_eq!(unknown, "no policy on file; escalate to a human");
    client.leave().await;
}
