//! Who may call: tokens from the environment, each with the participant that has it, and the signed tokens of an issuer.

use std::path::{Path, PathBuf};

use harness_a2a::JwksSource;
use harness_model::{ParticipantId, Secret};

use super::{
    checks::{header_id, header_name, if_set, not_blank, variable},
    environment::Environment,
    problem::{Refusal, quoted},
    reader::{Reader, Table},
    section::{optional, or, required, section},
    setting::{Setting, toml_string},
};
use toml::de::DeValue;

section! {
    /// Sign-in of callers. With `[[security.tokens]]` or `[security.jwt]` every request has to carry a token, and acts as
    /// the participant that has it. Without them, requests assert their participant and nothing here proves it.
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

section! {
    /// Sign-in with `Authorization: Bearer TOKEN`, the token being a JSON Web Token that an issuer has signed with RS256,
    /// PS256, ES256 or EdDSA. Tokens name their key, have to expire, and have at most 8 KiB. It may stand beside
    /// `[[security.tokens]]`; either is then enough.
    Jwt {
        /// Who issues the tokens, exactly as the claim `iss` says.
        issuer: String = required(), not_blank;
        /// Whom the tokens are for: the claim `aud`, or one of its entries.
        audience: String = required(), not_blank;
        /// The issuer's public keys as a JSON Web Key Set: an `https` address, an `http` address with a literal loopback
        /// address as its host, or a file. Loaded at start, at most once a minute when a token names an unknown key, and
        /// otherwise once an hour.
        jwks: KeySource = required();
        /// The claim that is the participant's id.
        participant_claim: String = or("sub"), not_blank;
    }
}

/// Where an issuer's keys are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeySource(pub(crate) JwksSource);

impl Default for KeySource {
    fn default() -> Self {
        Self(JwksSource::File(PathBuf::new()))
    }
}

impl Setting for KeySource {
    fn kind() -> String {
        "an address or a path".to_owned()
    }

    fn example() -> String {
        "\"https://issuer.example.com/.well-known/jwks.json\"".to_owned()
    }

    fn read(value: &DeValue<'_>) -> Result<Self, Refusal> {
        let text = String::read(value)?;
        if !text.contains("://") {
            return PathBuf::read(value).map(|path| Self(JwksSource::File(path)));
        }
        let source = JwksSource::Url(text);
        source.check().map_err(|_| {
            Refusal::with_remedy(
                "must be an https address without user information, or http on a literal loopback address",
                "write it as `https://host/path`, or give the path of a file",
            )
        })?;
        Ok(Self(source))
    }

    fn show(&self) -> Option<String> {
        Some(match &self.0 {
            JwksSource::Url(url) => toml_string(url),
            JwksSource::File(path) => toml_string(&path.to_string_lossy()),
        })
    }

    fn settle(self, cwd: &Path) -> Self {
        match self.0 {
            JwksSource::Url(_) => self,
            JwksSource::File(path) => Self(JwksSource::File(path.settle(cwd))),
        }
    }
}

/// Characters of a token, at least: shorter ones can be guessed.
const TOKEN_CHARS_MIN: usize = 16;

/// `[security]`, when callers have to sign in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Security {
    /// Header of the token; `None` is a bearer token.
    pub(crate) header: Option<String>,
    /// The tokens; there are some, or there is an issuer.
    pub(crate) tokens: Vec<(ParticipantId, Secret)>,
    /// The issuer of signed tokens.
    pub(crate) jwt: Option<Jwt>,
    pub(super) table: SecurityTable,
    pub(super) listed: Vec<Token>,
}

/// Reads the table; `None` when nobody has to sign in.
pub(super) fn read<'a>(
    reader: &mut Reader<'a>,
    root: &Table<'a>,
    environment: Environment<'_>,
) -> Option<Security> {
    let outer = reader.table(root, "security");
    let table: SecurityTable = reader.section(&outer, &["tokens", "jwt"]);
    let (tokens, listed) = read_tokens(reader, &outer, environment);
    let jwt = read_jwt(reader, &outer);
    if outer.is_present() && listed.is_empty() && jwt.is_none() {
        let message = "`[security]` lists no tokens and names no issuer, so nobody has to sign in".to_owned();
        let remedy = "add a [[security.tokens]] entry or [security.jwt], or remove [security]".to_owned();
        reader.refuse_table(&outer, message, remedy);
    } else if outer.has("header") && listed.is_empty() {
        let message = "`header` is for the tokens of [[security.tokens]], and there are none".to_owned();
        reader.refuse(
            &outer,
            "header",
            message,
            "remove it; signed tokens travel in `Authorization`".to_owned(),
        );
    }
    let signed_in = !listed.is_empty() || jwt.is_some();
    signed_in.then(|| Security { header: table.header.clone(), tokens, jwt, table, listed })
}

fn read_jwt<'a>(reader: &mut Reader<'a>, outer: &Table<'a>) -> Option<Jwt> {
    let table = reader.table(outer, "jwt");
    if !table.is_present() {
        return None;
    }
    let jwt: Jwt = reader.section(&table, &[]);
    if let JwksSource::File(path) = &jwt.jwks.0
        && !path.is_file()
        && !reader.has_problem_at(&table.key("jwks"))
    {
        let message = format!("`jwks` names {}, which is not a file", quoted(&path.to_string_lossy()));
        reader.refuse(
            &table,
            "jwks",
            message,
            "give the address or the file of the issuer's keys".to_owned(),
        );
    }
    Some(jwt)
}

/// The tokens that can be used, and all that are listed.
fn read_tokens<'a>(
    reader: &mut Reader<'a>,
    outer: &Table<'a>,
    environment: Environment<'_>,
) -> (Vec<(ParticipantId, Secret)>, Vec<Token>) {
    let mut tokens = Vec::new();
    let mut listed = Vec::new();
    for entry in reader.list_of_tables(outer, "tokens") {
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
    (tokens, listed)
}
