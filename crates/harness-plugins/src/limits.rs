//! Limits of a plugin folder. Bytes are checked before parsing, counts before work is done for each entry.

/// Bytes of `plugin.json`.
pub(crate) const MANIFEST_BYTES_MAX: u64 = 65_536;
/// Bytes of `mcp.json`.
pub(crate) const MCP_BYTES_MAX: u64 = 262_144;
/// Bytes of one `SKILL.md`.
pub(crate) const SKILL_BYTES_MAX: u64 = 262_144;
/// Bytes of one prompt file.
pub(crate) const PROMPT_BYTES_MAX: u64 = 131_072;
/// Bytes of a YAML front matter.
pub(crate) const FRONT_MATTER_BYTES_MAX: usize = 16_384;
/// Entries of any one folder that is listed.
pub(crate) const FOLDER_ENTRIES_MAX: usize = 512;
/// MCP servers of one plugin.
pub(crate) const SERVERS_MAX: usize = 64;
/// Strings in one list or map of a server: arguments, variables, headers.
pub(crate) const SERVER_STRINGS_MAX: usize = 256;
/// Bytes of one such string.
pub(crate) const SERVER_STRING_BYTES_MAX: usize = 32_768;
/// Characters of a plugin's, a server's and a skill's name.
pub(crate) const NAME_CHARS_MAX: usize = 64;
/// Characters of a skill's description. Source: Agent Skills.
pub(crate) const SKILL_DESCRIPTION_CHARS_MAX: usize = 1_024;
/// Characters of a skill's compatibility note. Source: Agent Skills.
pub(crate) const SKILL_COMPATIBILITY_CHARS_MAX: usize = 500;
/// Sections of one prompt.
pub(crate) const PROMPT_SECTIONS_MAX: usize = 64;
/// Nesting of JSON in a plugin.
pub(crate) const JSON_DEPTH_MAX: usize = 32;
