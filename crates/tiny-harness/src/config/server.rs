//! The top of the file, the server, its card, and the other agents.

use std::{path::PathBuf, time::Duration};

use harness_a2a::Extension;
use harness_model::{Lifecycle, names::DEFAULT_AGENT};

use super::{
    checks::{
        at_least, base_url, each, header_id, if_set, name, not_blank, not_self, origin, push_address, range,
        unique_extensions, unique_folders,
    },
    section::{optional, or, required, section},
    setting::{BindAddress, Choice},
};

section! {
    /// The top of the file. These keys and the `[[agents]]` come before the first `[section]`.
    Top {
        /// The plugin folders to load, in order. Relative paths start from the folder where `tiny-harness` is started. A
        /// plugin that is not valid is not loaded; a part that is not valid is skipped and the rest is loaded.
        plugins: Vec<PathBuf> = or([]), unique_folders;
    }
}

section! {
    /// Where this agent listens and whom it serves.
    Server {
        /// Address and port to listen on; port 0 lets the system choose one. An address that other machines can reach
        /// needs `perimeter = true`.
        bind: BindAddress = or(BindAddress::default());
        /// Where clients and other agents reach this server; it is on the card, and the harness calls itself there. The
        /// default is `http://` and the address that it listens on. Required when `bind` is not a loopback address.
        base_url: Option<String> = optional(), if_set(base_url);
        /// The id under which this agent takes part in tasks. Two harnesses that talk to each other need different ones.
        agent_id: String = or(DEFAULT_AGENT), header_id, not_self;
        /// What the end of a turn means for a task that does not say so: `conversation` waits for the next message,
        /// `delegated` completes with the answer.
        lifecycle: Lifecycle = or(Lifecycle::Conversation);
        /// The participant that a request acts as when it asserts nobody. Not set: such requests are refused. Without a
        /// configuration file it is `local-user`.
        anonymous: Option<String> = optional(), if_set(header_id);
        /// Says that something in front of this server authenticates every request. Requests assert their participant
        /// and nothing here proves it, so `bind` may leave the loopback addresses only with this.
        perimeter: bool = or(false);
        /// Participants that may choose lifecycle, model and reasoning effort of a task they create.
        delegators: Vec<String> = or([]), each(header_id);
        /// Bytes of a request body. From 1024 to 104857600.
        max_request_bytes: u32 = or(1_048_576_u32), range(1_024, 104_857_600);
        /// Requests per minute from one address; 0 turns the limit off.
        rate_limit_per_minute: u32 = or(120_u32);
        /// Origins of web pages that may call this server, such as `https://app.example.com`; `*` allows all.
        cors_origins: Vec<String> = or([]), each(origin);
        /// Hosts, addresses and networks that push notifications may go to besides public ones, such as `127.0.0.1` or
        /// `10.0.0.0/8`. Everything else that is private, loopback or link-local is refused.
        push_allowed: Vec<String> = or([]), each(push_address);
        /// Folder with a web user interface to serve under `/ui`.
        ui_dir: Option<PathBuf> = optional();
        /// How long a stop waits for requests and activities that are under way. From 0 to 10 minutes.
        shutdown_grace: Duration = or(Duration::from_secs(10)), range(Duration::ZERO, Duration::from_secs(600));
        /// Accepted for older configurations; streams follow the event log and are not polled.
        bridge_interval: Duration = or(Duration::from_millis(250));
    }
}

section! {
    /// How other agents see this one. Another agent shows name, description and skills to its model.
    Card {
        /// The name on the card.
        name: String = or(DEFAULT_AGENT), not_blank;
        /// What this agent does and what it needs. Not set: a general description.
        description: Option<String> = optional(), if_set(not_blank);
        /// The version on the card.
        version: String = or("0.1.0"), not_blank;
        /// Extensions that callers have to speak: the card marks them as required, and a request whose `A2A-Extensions`
        /// does not name them is refused. Plain A2A clients name none.
        required_extensions: Vec<Extension> = or([]), unique_extensions;
    }
}

section! {
    /// One kind of work that this agent does.
    CardSkill {
        /// Id; no two skills have the same.
        id: String = required(), not_blank;
        /// Name.
        name: String = required(), not_blank;
        /// What it does.
        description: Option<String> = optional(), if_set(not_blank);
        /// Keywords.
        tags: Vec<String> = or([]), each(not_blank);
        /// Requests that it is for.
        examples: Vec<String> = or([]), each(not_blank);
    }
}

section! {
    /// Another A2A agent that this one can give work to.
    Agent {
        /// The name that this agent uses for the other one. Not `self`; no two agents have the same.
        id: String = required(), name, not_self;
        /// Its address; its card is at `/.well-known/agent-card.json` below it.
        url: String = required(), base_url;
        /// The version that is recorded for it.
        version: Option<String> = optional(), if_set(not_blank);
        /// How this agent learns that a waiting sub-task changed: the other agent pushes (`auto`, falls back to `follow`), a
        /// connection is kept open (`follow`), or only at the next message (`off`).
        updates: Updates = or(Updates::Auto);
        /// With `follow`: the pause before listening again. At least 1 second.
        follow_interval: Duration = or(Duration::from_secs(5)), at_least(Duration::from_secs(1));
    }
}

impl Choice for Extension {
    const CHOICES: &'static [(Self, &'static str)] =
        &[(Self::Task, "task"), (Self::Channel, "channel"), (Self::A2ui, "a2ui")];
}

/// How this agent learns that a waiting sub-task changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Updates {
    /// Push; follow where the other agent cannot push.
    #[default]
    Auto,
    /// A connection that is kept open.
    Follow,
    /// Not at all between messages.
    Off,
}

impl Choice for Updates {
    const CHOICES: &'static [(Self, &'static str)] =
        &[(Self::Auto, "auto"), (Self::Follow, "follow"), (Self::Off, "off")];
}
