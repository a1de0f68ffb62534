#!/usr/bin/env node
// Drives every operation of an agent through the official JavaScript client, on both bindings, with and without a tenant.
//
// Usage: js_client.mjs DIRECTORY URL. DIRECTORY holds the installed client; the agent behind the URL is
// `examples/conformance`. Prints one line for each check: `ok NAME`, or `not ok NAME: WHY`. Exits with 0 when it could ask
// everything, whatever the answers were.

import { deepStrictEqual as same, ok as holds } from "node:assert";
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const [directory, url] = process.argv.slice(2);
const load = createRequire(resolve(directory, "package.json"));
const { SendMessageRequest, SubscribeToTaskRequest, TaskState } = load("@a2a-js/sdk");
const sdk = load("@a2a-js/sdk/client");

const BINDINGS = { "json-rpc": "JSONRPC", rest: "HTTP+JSON" };
const TENANTS = ["", "acme"];
const CHECK_MS_MAX = 30_000;

const state = (task) => TaskState[task.status.state].replace("TASK_STATE_", "");
const text = (artifact) => artifact.parts[0].content.value;

async function all(events) {
  const seen = [];
  for await (const event of events) seen.push(event.payload);
  return seen;
}

async function refused(reason, call) {
  let answer;
  try {
    answer = await call;
  } catch (error) {
    // The client names its errors after those of the protocol, on one binding with the binding's name in front.
    const name = error.constructor.name.replace(/^(JsonRpc|Rest)/, "");
    return same(name, reason, `expected ${reason}, got ${name}: ${error.message}`);
  }
  throw new Error(`expected ${reason}, got an answer: ${JSON.stringify(answer).slice(0, 200)}`);
}

/** One binding and one tenant. */
class Session {
  constructor(client, card, tenant) {
    Object.assign(this, { client, card, tenant });
  }

  request(behaviour, { message = {}, ...configuration } = {}) {
    return SendMessageRequest.fromJSON({
      tenant: this.tenant,
      message: {
        messageId: `${behaviour}-${randomUUID()}`,
        role: "ROLE_USER",
        parts: [{ text: "hello" }],
        ...message,
      },
      configuration,
    });
  }

  send(behaviour, options) {
    return this.client.sendMessage(this.request(behaviour, options));
  }

  stream(behaviour, options) {
    return all(this.client.sendMessageStream(this.request(behaviour, options)));
  }

  subscribe(id) {
    return all(this.client.resubscribeTask(SubscribeToTaskRequest.fromJSON({ tenant: this.tenant, id })));
  }

  get(id, fields = {}) {
    return this.client.getTask({ tenant: this.tenant, id, ...fields });
  }

  list(fields) {
    const unset = { contextId: "", status: TaskState.TASK_STATE_UNSPECIFIED, pageToken: "", statusTimestampAfter: undefined };
    return this.client.listTasks({ tenant: this.tenant, ...unset, ...fields });
  }

  cancel(id) {
    return this.client.cancelTask({ tenant: this.tenant, id, metadata: undefined });
  }
}

/** A stream begins with the task and ends with the end of its turn; everything is about one task. */
function checkStream(events, taskId, end) {
  same(events[0].$case, "task");
  const last = events.at(-1);
  same([last.$case, state(last.value)], ["statusUpdate", end]);
  const ids = events.map(({ $case, value }) => ($case === "task" ? value.id : value.taskId));
  same([...new Set(ids)], [taskId ?? events[0].value.id]);
}

const CHECKS = {
  async send(session) {
    const task = await session.send("tck-complete-task");
    same([state(task), text(task.artifacts[0])], ["COMPLETED", "Hello from TCK"]);
  },

  async send_at_once(session) {
    const task = await session.send("tck-long-running", { returnImmediately: true });
    holds(["SUBMITTED", "WORKING"].includes(state(task)), state(task));
    await session.cancel(task.id);
  },

  async send_again(session) {
    const message = { messageId: `tck-complete-task-${randomUUID()}` };
    const [first, again] = [await session.send("", { message }), await session.send("", { message })];
    same([again.id, again.status], [first.id, first.status]);
  },

  async send_invalid(session) {
    await refused("RequestMalformedError", session.send("tck-complete-task", { message: { parts: [] } }));
  },

  async send_media_type(session) {
    const message = { parts: [{ text: "hello", mediaType: "image/png" }] };
    await refused("ContentTypeNotSupportedError", session.send("tck-complete-task", { message }));
  },

  async send_unknown_task(session) {
    const message = { taskId: randomUUID() };
    await refused("TaskNotFoundError", session.send("tck-complete-task", { message }));
  },

  async send_ended_task(session) {
    const { id } = await session.send("tck-complete-task");
    await refused("UnsupportedOperationError", session.send("tck-complete-task", { message: { taskId: id } }));
  },

  async ask_and_reply(session) {
    const task = await session.send("tck-input-required");
    same(state(task), "INPUT_REQUIRED");
    const message = { taskId: task.id, contextId: task.contextId, parts: [{ text: "that" }] };
    const ended = await session.send("reply", { message });
    same([ended.id, state(ended)], [task.id, "COMPLETED"]);
  },

  async reject(session) {
    same(state(await session.send("tck-reject-task")), "REJECTED");
  },

  async artifact_file(session) {
    const [part] = (await session.send("tck-artifact-file")).artifacts[0].parts;
    const found = [Buffer.from(part.content.value).toString(), part.filename, part.mediaType];
    same(found, ["tck", "output.txt", "text/plain"]);
  },

  async artifact_url(session) {
    const task = await session.send("tck-artifact-file-url");
    same(text(task.artifacts[0]), "https://example.com/output.txt");
  },

  async artifact_data(session) {
    const task = await session.send("tck-artifact-data");
    same(text(task.artifacts[0]), { key: "value", count: 42 });
  },

  async stream(session) {
    const events = await session.stream("tck-stream-artifact-chunked");
    checkStream(events, undefined, "COMPLETED");
    const updates = events.filter(({ $case }) => $case === "artifactUpdate").map(({ value }) => value);
    same(updates.map(({ artifact }) => text(artifact)).join(""), "chunk-1 chunk-2");
    same([updates[0].append, updates.at(-1).lastChunk], [false, true]);
  },

  async stream_follow_up(session) {
    const task = await session.send("tck-input-required");
    const message = { taskId: task.id, contextId: task.contextId };
    checkStream(await session.stream("reply", { message }), task.id, "COMPLETED");
  },

  async stream_unknown_task(session) {
    const message = { taskId: randomUUID() };
    await refused("TaskNotFoundError", session.stream("tck-complete-task", { message }));
  },

  async subscribe(session) {
    const { id } = await session.send("tck-long-running", { returnImmediately: true });
    const streams = await Promise.all([session.subscribe(id), session.subscribe(id)]);
    for (const events of streams) checkStream(events, id, "COMPLETED");
  },

  async subscribe_refused(session) {
    const { id } = await session.send("tck-complete-task");
    await refused("UnsupportedOperationError", session.subscribe(id));
    await refused("TaskNotFoundError", session.subscribe(randomUUID()));
  },

  async get(session) {
    const sent = await session.send("tck-complete-task");
    const task = await session.get(sent.id);
    same([task.id, task.contextId, task.status], [sent.id, sent.contextId, sent.status]);
    same((await session.get(sent.id, { historyLength: 1 })).history.length, 1);
    await refused("TaskNotFoundError", session.get(randomUUID()));
  },

  async list_tasks(session) {
    const contextId = `list-${randomUUID()}`;
    const sent = [];
    for (let n = 0; n < 3; n += 1) {
      sent.push((await session.send("tck-complete-task", { message: { contextId } })).id);
    }
    const page = await session.list({ contextId, pageSize: 2 });
    same([page.totalSize, page.tasks.length, page.pageSize], [3, 2, 2]);
    const rest = await session.list({ contextId, pageSize: 2, pageToken: page.nextPageToken });
    const found = [...page.tasks, ...rest.tasks].map(({ id }) => id);
    same([found, rest.nextPageToken], [sent.toReversed(), ""]);
    const full = await session.list({ contextId, includeArtifacts: true, status: TaskState.TASK_STATE_COMPLETED });
    same(full.tasks.map(({ artifacts }) => artifacts.length), [1, 1, 1]);
    same((await session.list({ contextId, status: TaskState.TASK_STATE_FAILED })).totalSize, 0);
  },

  async cancel(session) {
    const { id } = await session.send("tck-long-running", { returnImmediately: true });
    same(state(await session.cancel(id)), "CANCELED");
    same(state(await session.get(id)), "CANCELED");
    await refused("TaskNotCancelableError", session.cancel(id));
    await refused("TaskNotFoundError", session.cancel(randomUUID()));
  },

  async push_configs(session) {
    const { client, tenant } = session;
    const task = await session.send("tck-input-required");
    const names = { tenant, taskId: task.id };
    const hook = "http://127.0.0.1:9/hook";
    const config = { ...names, id: "", url: hook, token: "secret-token", authentication: undefined };
    const created = await client.createTaskPushNotificationConfig(config);
    holds(created.id !== "");
    same(created.url, hook);
    const one = { ...names, id: created.id };
    same((await client.getTaskPushNotificationConfig(one)).url, hook);
    const list = () => client.listTaskPushNotificationConfig({ ...names, pageSize: 0, pageToken: "" });
    same((await list()).configs.map(({ id }) => id), [created.id]);
    await client.deleteTaskPushNotificationConfig(one);
    await client.deleteTaskPushNotificationConfig(one);
    same((await list()).configs.length, 0);
  },

  async extended_card({ client, card }) {
    // The client answers with the card it has when that declares no extended one, and asks otherwise.
    same((await client.getAgentCard()).name, card.name);
  },
};

async function run(name, check) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("not done in time")), CHECK_MS_MAX);
  });
  try {
    await Promise.race([check, late]);
    console.log(`ok ${name}`);
  } catch (error) {
    const why = `${error.constructor.name}: ${error.message}`.replace(/\s+/g, " ").slice(0, 300);
    console.log(`not ok ${name}: ${why}`);
  } finally {
    clearTimeout(timer);
  }
}

const card = await sdk.AgentCardResolver.default.resolve(url);
console.log("ok card");
const runs = [];
for (const [binding, transport] of Object.entries(BINDINGS)) {
  const options = sdk.ClientFactoryOptions.createFrom(sdk.ClientFactoryOptions.default, { preferredTransports: [transport] });
  const client = await new sdk.ClientFactory(options).createFromAgentCard(card);
  same(client.transport.protocolName, transport);
  for (const tenant of TENANTS) {
    const where = tenant ? `${binding}.${tenant}` : binding;
    const session = new Session(client, card, tenant);
    for (const [name, check] of Object.entries(CHECKS)) runs.push(run(`${where}.${name}`, check(session)));
  }
}
await Promise.all(runs);
