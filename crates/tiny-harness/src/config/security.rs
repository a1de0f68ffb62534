//! Who may call: tokens from the environment, each with the participant that has it.

use harness_model::{ParticipantId, Secret};

use super::{
    checks::{header_id, header_name, if_set, not_blank, variable},
    environment::Environment,
    problem::quoted,
    reader::{Reader, Table},
    section::{optional, required, section},
};

section! {
    /// Sign-in of callers. With `[[security.tokens]]` every request has to carry a token, and acts as the participant that
    /// has it. Without them, requests assert their participant and nothing here proves it.
    SecurityTable {
        /// The header that carries the token, such as `X-API-Key`. Not set: `Authorization: Bearer TOKEN`.
        header: Option<String> = optional(), if_set(header_name);
    }
}

section! {
    /// A token and who has it. One participant may have several, so that they can be changed without a gap.
    Token {
        /// The participant.
        participant: String = required(), header_id, not_blank;
        /// The environment variable that holds the token, at least 16 characters.
        token_env: String = required(), variable;
    }
}

/// Characters of a token, at least: shorter ones can be guessed.
const TOKEN_CHARS_MIN: usize = 16;

/// `[security]`, when callers have to sign in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Security {
    /// Header of the token; `None` is a bearer token.
    pub(crate) header: Option<String>,
    /// The tokens; not empty.
    pub(crate) tokens: Vec<(ParticipantId, Secret)>,
    pub(super) table: SecurityTable,
    pub(super) listed: Vec<Token>,
}

/// Reads the table; `None` when it lists no tokens.
pub(super) fn read<'a>(
    reader: &mut Reader<'a>,
    root: &Table<'a>,
    environment: Environment<'_>,
) -> Option<Security> {
    let outer = reader.table(root, "security");
    let table: SecurityTable = reader.section(&outer, &["tokens"]);
    let mut tokens = Vec::new();
    let mut listed = Vec::new();
    for entry in reader.list_of_tables(&outer, "tokens") {
        let token: Token = reader.section(&entry, &[]);
        match environment.secret(&token.token_env, reader) {
            Some(secret) if secret.reveal().chars().count() >= TOKEN_CHARS_MIN => {
                tokens.push((ParticipantId::new(token.participant.clone()), secret));
            }
            Some(_) => reader.refuse_variable(
                &token.token_env,
                format!("the token is shorter than {TOKEN_CHARS_MIN} characters"),
                "make one with `openssl rand -hex 32`".to_owned(),
            ),
            None if token.token_env.is_empty() => {}
            None => {
                let message = format!("`token_env` names {}, which is not set", quoted(&token.token_env));
                reader.refuse(&entry, "token_env", message, format!("set {}", token.token_env));
            }
        }
        listed.push(token);
    }
    if outer.is_present() && listed.is_empty() {
        let message = "`[security]` lists no tokens, so nobody has to sign in".to_owned();
        reader.refuse_table(
            &outer,
            message,
            "add a [[security.tokens]] entry, or remove [security]".to_owned(),
        );
    }
    (!listed.is_empty()).then(|| Security { header: table.header.clone(), tokens, table, listed })
}
