//! The effective configuration as TOML: every key with the value that counts. Secrets are named, never shown.

use super::{Config, TemporalMode, section::Section, temporal::REMOTE_ONLY};

impl Config {
    /// The whole configuration as it counts. Loading it again under the same environment gives the same one.
    pub(crate) fn show(&self) -> String {
        let mut text = match &self.file {
            Some(file) => format!("# Effective configuration: {} and defaults.\n", file.display()),
            None => "# Effective configuration: no file, defaults only.\n".to_owned(),
        };
        keys(&mut text, &self.top);
        table(&mut text, "[server]", &self.server);
        if let Some(security) = &self.security {
            table(&mut text, "[security]", &security.table);
            for token in &security.listed {
                table(&mut text, "[[security.tokens]]", token);
            }
            if let Some(jwt) = &security.jwt {
                table(&mut text, "[security.jwt]", jwt);
            }
        }
        table(&mut text, "[card]", &self.card);
        for skill in &self.card_skills {
            table(&mut text, "[[card.skills]]", skill);
        }
        for (path, values) in &self.models.tables {
            text.push_str(&format!("\n[{path}]\n"));
            lines(&mut text, values);
        }
        match &self.postgres {
            Some(postgres) => table(&mut text, "[store.postgres]", &postgres.table),
            None => table(&mut text, "[store]", &self.store),
        }
        table(&mut text, "[context]", &self.context);
        table(&mut text, "[limits]", &self.limits);
        table(&mut text, "[budget]", &self.budget);
        for (model, price) in &self.prices {
            table(&mut text, &format!("[prices.{}]", toml::Value::String(model.clone())), price);
        }
        table(&mut text, "[retries.default]", &self.retries.default);
        for (activity, policy) in &self.retries.per_activity {
            table(&mut text, &format!("[retries.per_activity.{activity}]"), policy);
        }
        if let Some(temporal) = &self.temporal {
            let embedded = temporal.table.mode == TemporalMode::Embedded;
            let mut shown = temporal.table.show();
            shown.retain(|(key, _)| !embedded || !REMOTE_ONLY.contains(key));
            text.push_str("\n[temporal]\n");
            lines(&mut text, &shown);
            if embedded {
                table(&mut text, "[temporal.embedded]", &temporal.embedded);
            }
        }
        table(&mut text, "[agents_policy]", &self.agents_policy);
        table(&mut text, "[heartbeat]", &self.heartbeat);
        table(&mut text, "[retention]", &self.retention);
        table(&mut text, "[o11y]", &self.o11y);
        for agent in &self.agents {
            table(&mut text, "[[agents]]", agent);
        }
        text.push_str("\n# Secrets, from the environment:\n");
        if self.secret_values.is_empty() {
            text.push_str("# none\n");
        }
        for (name, secret) in &self.secret_values {
            text.push_str(&format!("# {name} = {secret}\n"));
        }
        for note in &self.notes {
            text.push_str(&format!("# note: {note}\n"));
        }
        self.redactor().text(&text)
    }
}

fn table<T: Section>(text: &mut String, header: &str, section: &T) {
    text.push_str(&format!("\n{header}\n"));
    keys(text, section);
}

fn keys<T: Section>(text: &mut String, section: &T) {
    lines(text, &section.show());
}

fn lines(text: &mut String, values: &[(&'static str, Option<String>)]) {
    for (key, value) in values {
        match value {
            Some(value) => text.push_str(&format!("{key} = {value}\n")),
            None => text.push_str(&format!("# {key} is not set\n")),
        }
    }
}
