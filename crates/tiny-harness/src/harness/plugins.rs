//! Plugins of the configuration: their tools started, their skills and prompts collected.

use std::sync::Arc;

use harness_activities::{ResourceContent, ResourceKind, Skill, SkillLibrary, SkillResource};
use harness_agent::context::{PromptExtension, SystemPrompt};
use harness_mcp::{McpOptions, McpTools, ServerConfig, ServerTransport, StartProblem};
use harness_plugins::{McpServerSpec, McpTransport, Plugin, PromptRole, SYSTEM_PROMPT_ID};
use harness_ports::{TaskGroup, ToolSource};

use super::StartOptions;
use crate::config::Config;

/// The name under which a plugin asks for this very program.
const OWN_PROGRAM: &str = "tiny-harness";

/// What plugins bring.
pub(super) struct Extras {
    pub(super) tools: Arc<dyn ToolSource>,
    pub(super) skills: SkillLibrary,
    pub(super) prompt: SystemPrompt,
}

/// Loads the plugins and starts their tool servers. What is broken is left out and logged; the rest works.
pub(super) async fn load(config: &Config, options: &StartOptions, group: &TaskGroup) -> Extras {
    let data_root = config.plugin_data_root();
    let report = harness_plugins::load_plugins(config.plugins(), &data_root);
    for skipped in &report.skipped {
        tracing::warn!("{skipped}");
    }
    for note in &report.notes {
        tracing::info!("plugin {}: {}", note.plugin, note.text);
    }
    let (tools, problems) = start_servers(config, &report.plugins, options, group).await;
    for problem in &problems {
        tracing::warn!("tool server {}: {problem}", problem.server);
    }
    tracing::info!("plugins: {}, tools: {}", report.plugins.len(), tools.catalogue().len());
    Extras { tools, skills: skills(&report.plugins), prompt: prompt(&report.plugins) }
}

/// Starts the tool servers of these plugins. What does not start is among the problems.
pub(crate) async fn start_servers(
    config: &Config,
    plugins: &[Plugin],
    options: &StartOptions,
    group: &TaskGroup,
) -> (Arc<McpTools>, Vec<StartProblem>) {
    let servers = plugins.iter().flat_map(|plugin| &plugin.servers).map(|spec| server(spec, options));
    let mcp = McpOptions {
        ambient_env: options.env.clone(),
        stderr_dir: Some(config.plugin_data_root().join("stderr")),
        redactor: Arc::new(config.redactor()),
        ..McpOptions::default()
    };
    McpTools::start(servers.collect(), mcp, group).await
}

fn server(spec: &McpServerSpec, options: &StartOptions) -> ServerConfig {
    let transport = match &spec.transport {
        McpTransport::Stdio { command, args, env, cwd } => ServerTransport::Stdio {
            command: if command == OWN_PROGRAM {
                options.program.display().to_string()
            } else {
                command.clone()
            },
            args: args.clone(),
            env: env.clone(),
            cwd: Some(cwd.clone()),
        },
        McpTransport::StreamableHttp { url, headers } => {
            ServerTransport::StreamableHttp { url: url.clone(), headers: headers.clone() }
        }
    };
    ServerConfig { registry_prefix: spec.registry_prefix.clone(), transport }
}

fn skills(plugins: &[Plugin]) -> SkillLibrary {
    SkillLibrary::new(plugins.iter().flat_map(|plugin| &plugin.skills).map(skill))
}

fn skill(skill: &harness_plugins::Skill) -> Skill {
    let resources = skill.resources.iter().filter_map(|path| {
        let (folder, name) = path.split_once('/')?;
        let kind = [ResourceKind::Scripts, ResourceKind::References, ResourceKind::Assets]
            .into_iter()
            .find(|kind| kind.name() == folder)?;
        let content = ResourceContent::File(skill.folder.join(path));
        Some(SkillResource { kind, name: name.to_owned(), content })
    });
    Skill {
        name: skill.name.clone(),
        description: skill.description.clone(),
        body: skill.body.clone(),
        resources: resources.collect(),
    }
}

/// The system prompt: the last plugin that replaces it wins, then every extension in order.
fn prompt(plugins: &[Plugin]) -> SystemPrompt {
    let prompts = || plugins.iter().flat_map(|plugin| &plugin.prompts);
    let mut prompt = SystemPrompt::builtin();
    for whole in prompts().filter(|prompt| prompt.id == SYSTEM_PROMPT_ID) {
        if let PromptRole::Whole { preamble, sections } = &whole.role {
            let mut text = preamble.clone();
            for section in sections {
                text.push_str(&format!("\n## {}\n{}\n", section.name, section.text));
            }
            prompt = SystemPrompt::parse(&text);
        }
    }
    for extension in prompts() {
        if let PromptRole::Extension { section, text } = &extension.role {
            let own =
                PromptExtension { id: extension.id.clone(), section: section.clone(), body: text.clone() };
            if let Err(problem) = prompt.extend(&own) {
                tracing::warn!("[prompt.invalid] plugin {}: {problem}", extension.plugin);
            }
        }
    }
    prompt
}
