//! The harness put together: configuration in, a serving agent out. Everything meets here and nowhere else.

pub(crate) mod engine;
mod heartbeat;
pub(crate) mod models;
pub(crate) mod plugins;
pub(crate) mod push;
mod store;
#[cfg(feature = "temporal")]
pub(crate) mod temporal;

use std::{collections::BTreeMap, io, path::PathBuf, sync::Arc, time::Duration};

use harness_a2a::{A2aConfig, A2aService, AddressGuard, PushKey, SecurityScheme, StaticToken};
use harness_activities::{Activities, ActivityObserver, ContextSettings, Deps, Tick};
use harness_agent::{ModelPrice, Retries, RetryPolicy, TaskDefinition, TaskSettings};
use harness_model::{AgentId, ParticipantId};
use harness_ports::{Clock, IdSource, Store, TaskGroup, ToolSource};
use harness_store::{CommitHook, PostgresUse};
use tokio::net::TcpListener;

pub(crate) use store::OpenStore;

use self::engine::{EngineSlot, Parts, Role, RunningEngine};
use crate::{
    config::{Config, Security, TemporalConfig, TemporalMode},
    failure::Failure,
    system::{RandomIds, SystemClock},
};

/// What the configuration does not say.
pub(crate) struct StartOptions {
    /// The environment; tool servers get a few variables of it.
    pub(crate) env: BTreeMap<String, String>,
    /// This program, for plugins whose servers are part of it.
    pub(crate) program: PathBuf,
    /// Faults for crash tests.
    pub(crate) on_commit: Option<CommitHook>,
    /// Hears about every activity.
    pub(crate) observer: Option<Arc<dyn ActivityObserver>>,
}

/// A running harness. Ends only through [`Harness::stop`].
pub(crate) struct Harness {
    /// Where clients reach it; nowhere, when it only works.
    pub(crate) base_url: String,
    server: TaskGroup,
    service: Option<A2aService>,
    ticks: TaskGroup,
    tools_group: TaskGroup,
    engine: RunningEngine,
    tools: Arc<dyn ToolSource>,
    store: OpenStore,
    grace: Duration,
}

/// How long tool servers and the rest may take to leave at the end.
const LEAVE_TIME: Duration = Duration::from_secs(5);

impl Harness {
    /// Starts what the role needs and returns once the server listens.
    /// Errors: texts for the operator; whatever was started is stopped again.
    pub(crate) async fn start(config: &Config, role: Role, options: StartOptions) -> Result<Self, Failure> {
        engine::check_role(config, role)?;
        for note in &config.notes {
            tracing::warn!("configuration: {note}");
        }
        // What can fail comes before what has effects: the engine goes on with tool calls the moment it starts.
        let provider = models::provider(config)?;
        // An engine that goes on with whatever is left to do must be the only one.
        let usage = if store_is_shared(config) { PostgresUse::Shared } else { PostgresUse::Alone };
        let store = OpenStore::open(config, usage, options.on_commit.clone()).await?;
        let push_key = push::key(config)?;
        let listener = if role.serves() { Some(listen(config).await?) } else { None };
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
        let ids: Arc<dyn IdSource> = Arc::new(RandomIds);
        let tools_group = TaskGroup::new();
        let extras = plugins::load(config, &options, &tools_group).await;
        let info = provider.info();
        tracing::info!("model endpoint {} api={} model={}", info.endpoint, info.api, info.model);

        let shared_store: Arc<dyn Store> = store.shared();
        let deps = Deps {
            store: Arc::clone(&shared_store),
            provider,
            tools: Arc::clone(&extras.tools),
            skills: Arc::new(extras.skills),
            prompt: extras.prompt,
            agents_roster: "(no agents)".to_owned(),
            redactor: Arc::new(config.redactor()),
            clock: Arc::clone(&clock),
            context: context_settings(config),
            observer: options.observer.clone(),
        };
        let slot = EngineSlot::of(config);
        let tick = heartbeat::tick(config, shared_store, Arc::clone(&clock), Arc::clone(&slot) as _);
        let parts = parts(config, deps, Arc::clone(&ids), Arc::clone(&tick));
        let engine = match RunningEngine::start(config, role, parts).await {
            Ok(engine) => engine,
            Err(failure) => {
                extras.tools.shutdown().await;
                tools_group.shutdown(LEAVE_TIME).await;
                store.close().await;
                return Err(failure);
            }
        };
        slot.fill(&engine);
        let mut harness = Self {
            base_url: String::new(),
            server: TaskGroup::new(),
            service: None,
            ticks: ticks(config, &engine, tick),
            tools_group,
            engine,
            tools: extras.tools,
            store,
            grace: config.server.shutdown_grace,
        };
        if let Some((listener, base_url)) = listener {
            harness.base_url.clone_from(&base_url);
            match harness.serve(config, listener, &base_url, push_key, clock, ids).await {
                Ok(service) => harness.service = Some(service),
                Err(failure) => {
                    harness.stop().await;
                    return Err(failure);
                }
            }
        }
        Ok(harness)
    }

    /// Answers clients from here on.
    async fn serve(
        &self,
        config: &Config,
        listener: TcpListener,
        base_url: &str,
        push_key: PushKey,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> Result<A2aService, Failure> {
        let server = &self.server;
        let service = A2aService::new(
            a2a_config(config, base_url, push_key)?,
            self.engine.port(),
            self.store.shared(),
            clock,
            ids,
            Arc::new(config.redactor()),
        );
        let service = service
            .with_push(server.clone())
            .map_err(|error| Failure::general(format!("push notifications cannot be sent: {error}")))?;
        let keys = service.follow_keys(server).await;
        keys.map_err(|error| Failure::general(format!("{error} (security.jwt.jwks)")))?;
        let router = harness_a2a::router(service.clone(), Default::default());
        server.spawn(harness_a2a::serve(listener, router, server.stop_token().clone(), server.clone()));
        Ok(service)
    }

    /// Waits until the engine can work no more, though nobody stopped it. The log has the reason.
    pub(crate) async fn failed(&self) {
        self.engine.failed().await;
    }

    /// Stops in order: no more ticks, no new requests, activities may end within the grace, tool servers leave, the store closes.
    /// Tasks that were at work go on at the next start; none is canceled. Returns whether everything ended by itself.
    pub(crate) async fn stop(self) -> bool {
        if let Some(service) = &self.service {
            service.drain();
        }
        let mut ended = self.ticks.shutdown(LEAVE_TIME).await;
        ended &= self.server.shutdown(LEAVE_TIME).await;
        ended &= self.engine.stop(self.grace).await;
        self.tools.shutdown().await;
        ended &= self.tools_group.shutdown(LEAVE_TIME).await;
        self.store.close().await;
        ended
    }
}

/// The timer of the tick, unless the engine has schedules.
fn ticks(config: &Config, engine: &RunningEngine, tick: Arc<Tick>) -> TaskGroup {
    if engine.has_schedules() { TaskGroup::new() } else { heartbeat::start(tick, config.heartbeat.interval) }
}

/// What the engine gets: the activities of this build, and its one kind of workflow.
fn parts(config: &Config, deps: Deps, ids: Arc<dyn IdSource>, tick: Arc<Tick>) -> Parts {
    Parts {
        store: Arc::clone(&deps.store),
        clock: Arc::clone(&deps.clock),
        ids,
        activities: Arc::new(Activities::new(deps)),
        workflows: vec![Arc::new(TaskDefinition::new(task_settings(config)))],
        tick,
    }
}

/// Whether several processes work on the store at once.
pub(crate) fn store_is_shared(config: &Config) -> bool {
    let elsewhere = |temporal: &TemporalConfig| temporal.table.mode == TemporalMode::Remote;
    config.postgres.is_some() && config.temporal.as_ref().is_some_and(elsewhere)
}

async fn listen(config: &Config) -> Result<(TcpListener, String), Failure> {
    let bind = config.server.bind.to_string();
    let failed = |e: io::Error| Failure::general(format!("cannot listen on {bind}: {e} (server.bind)"));
    let listener = TcpListener::bind(&bind).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, config.base_url(address)))
}

fn a2a_config(config: &Config, base_url: &str, push_key: PushKey) -> Result<A2aConfig, Failure> {
    let server = &config.server;
    let mut a2a = A2aConfig::new(base_url, AgentId::new(server.agent_id.clone()));
    a2a.card.name.clone_from(&config.card.name);
    a2a.card.version.clone_from(&config.card.version);
    if let Some(description) = &config.card.description {
        a2a.card.description.clone_from(description);
    }
    a2a.card.required_extensions.clone_from(&config.card.required_extensions);
    a2a.card.skills = config.card_skills.iter().map(card_skill).collect();
    a2a.lifecycle = server.lifecycle;
    a2a.anonymous = server.anonymous.clone().map(ParticipantId::new);
    a2a.delegators = server.delegators.iter().cloned().map(ParticipantId::new).collect();
    a2a.models = config.models.selectable();
    a2a.reasoning_efforts = config.models.reasoning_efforts();
    a2a.max_request_bytes = usize::try_from(server.max_request_bytes).unwrap_or(usize::MAX);
    a2a.rate_limit_per_minute = server.rate_limit_per_minute;
    a2a.cors_origins.clone_from(&server.cors_origins);
    a2a.push_key = Some(push_key);
    a2a.push_guard = AddressGuard::allowing(&server.push_allowed)
        .map_err(|error| Failure::general(format!("{error} (server.push_allowed)")))?;
    if let Some(security) = &config.security {
        a2a.security = security_schemes(security)?;
    }
    Ok(a2a)
}

/// The schemes by which callers sign in: with tokens that are known here, with those of an issuer, or both.
fn security_schemes(security: &Security) -> Result<Vec<SecurityScheme>, Failure> {
    let mut schemes = Vec::new();
    if !security.tokens.is_empty() {
        schemes.push(token_scheme(security)?);
    }
    if let Some(jwt) = &security.jwt {
        schemes.push(SecurityScheme::Jwt {
            issuer: jwt.issuer.clone(),
            audience: jwt.audience.clone(),
            participant_claim: jwt.participant_claim.clone(),
            jwks: jwt.jwks.0.clone(),
        });
    }
    Ok(schemes)
}

fn token_scheme(security: &Security) -> Result<SecurityScheme, Failure> {
    let tokens = security.tokens.iter().map(|(participant, secret)| StaticToken {
        secret: secret.clone(),
        participant: participant.clone(),
    });
    let tokens = tokens.collect();
    match &security.header {
        None => Ok(SecurityScheme::Bearer { tokens }),
        Some(name) => {
            let header = name.to_ascii_lowercase().parse();
            let header = header
                .map_err(|_| Failure::general(format!("{name:?} is no header name (security.header)")))?;
            Ok(SecurityScheme::ApiKey { header, tokens })
        }
    }
}

fn card_skill(skill: &crate::config::CardSkill) -> harness_a2a::CardSkill {
    harness_a2a::CardSkill {
        id: skill.id.clone(),
        name: skill.name.clone(),
        description: skill.description.clone().unwrap_or_default(),
        tags: skill.tags.clone(),
        examples: skill.examples.clone(),
    }
}

fn context_settings(config: &Config) -> ContextSettings {
    ContextSettings {
        turn_budget_tokens: config.context.turn_budget_tokens,
        compaction_fraction: config.context.compaction_fraction,
        max_output_tokens: models::max_output_tokens(config),
    }
}

fn task_settings(config: &Config) -> TaskSettings {
    let per_activity = config.retries.per_activity.iter();
    TaskSettings {
        max_turns: config.context.max_turns,
        retries: Retries {
            default: retry_policy(&config.retries.default),
            per_activity: per_activity.map(|(name, policy)| (name.clone(), retry_policy(policy))).collect(),
        },
        token_budget: config.budget.task_tokens,
        prices: config.prices.iter().map(|(model, price)| (model.clone(), model_price(price))).collect(),
        model_timeout_ms: millis(config.limits.model_timeout),
        tool_timeout_ms: millis(config.limits.tool_timeout),
        activity_timeout_ms: millis(config.limits.activity_timeout),
    }
}

fn retry_policy(policy: &crate::config::RetryPolicy) -> RetryPolicy {
    RetryPolicy {
        initial_interval_ms: millis(policy.initial_interval),
        backoff_coefficient: policy.backoff_coefficient,
        maximum_interval_ms: millis(policy.maximum_interval),
        maximum_attempts: policy.maximum_attempts,
        non_retryable_error_types: policy.non_retryable_error_types.clone(),
    }
}

fn model_price(price: &crate::config::Price) -> ModelPrice {
    ModelPrice {
        input: micro_usd(price.input),
        cached: micro_usd(price.cached.unwrap_or(price.input)),
        output: micro_usd(price.output),
    }
}

/// The configuration bounds a price, so it fits.
fn micro_usd(usd: f64) -> u64 {
    (usd * 1_000_000.0).round() as u64
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
