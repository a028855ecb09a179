//! The page's style and script, and a content security policy that allows nothing else.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use sha2::{Digest, Sha256};

pub(super) const STYLE: &str = include_str!("assets/style.css");

/// The parts of the script of a study's page, in order.
const PARTS: [&str; 6] = [
    include_str!("assets/start.js"),
    include_str!("assets/chart.js"),
    include_str!("assets/page.js"),
    include_str!("assets/trials.js"),
    include_str!("assets/live.js"),
    include_str!("assets/end.js"),
];

/// The parts of the script of a profile's page, in order.
const PROFILE_PARTS: [&str; 5] = [
    include_str!("assets/start.js"),
    include_str!("assets/flame.js"),
    include_str!("assets/canvas.js"),
    include_str!("assets/offsets.js"),
    include_str!("assets/profile.js"),
];

/// The parts of the script of a page of tables, in order.
const TABLE_PARTS: [&str; 2] = [include_str!("assets/start.js"), include_str!("assets/tables.js")];

/// The content of a page, which determines its script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageContent {
    Study,
    Profile,
    /// Tables, with a form for filters.
    Tables,
}

/// Returns the script, in its own scope.
pub(super) fn script(content: PageContent) -> String {
    let parts = match content {
        PageContent::Study => PARTS.concat(),
        PageContent::Profile => PROFILE_PARTS.concat(),
        PageContent::Tables => TABLE_PARTS.concat(),
    };
    format!("(() => {{\n\"use strict\";\n{parts}}})();\n")
}

/// Returns the content security policy: only this style and this script. A served page may also
/// request progress and other rows of a table from its own server.
pub(super) fn policy(script: &str, served: bool) -> String {
    let own = if served { "form-action 'self'; connect-src 'self'" } else { "form-action 'none'" };
    format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; {own}",
        hash(STYLE),
        hash(script)
    )
}

fn hash(text: &str) -> String {
    format!("sha256-{}", base64(&Sha256::digest(text.as_bytes())))
}

/// Encodes Base64, whose characters need no escaping in markup.
fn base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (plain, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn nothing_in_style_or_script_ends_its_element_or_reaches_out() {
        let scripts = [PageContent::Study, PageContent::Profile, PageContent::Tables].map(script);
        for text in [STYLE, &scripts[0], &scripts[1], &scripts[2]] {
            let lower = text.to_lowercase();
            assert!(!lower.contains("</s") && !lower.contains("<!--"));
            // The namespace of SVG is an address that browsers never fetch.
            let rest = lower.replace("http://www.w3.org/2000/svg", "");
            assert!(!rest.contains("http") && !rest.contains("url(") && !rest.contains("@import"));
        }
    }
}
