//! Elements that several pages share.

use maud::{Markup, html};

/// The heading of a column: of text, or of figures, which are right-aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heading<'a> {
    Text(&'a str),
    Figure(&'a str),
    /// Of bars; only screen readers read it.
    Bar,
    /// Sorts the table when it is clicked.
    SortsText(&'a str),
    SortsFigures(&'a str),
    /// Like `SortsFigures`, and the rows are in this order already.
    SortedFigures(&'a str),
}

impl Heading<'_> {
    fn sorts(self) -> bool {
        matches!(self, Self::SortsText(_) | Self::SortsFigures(_) | Self::SortedFigures(_))
    }

    fn cell(self) -> Markup {
        let order = matches!(self, Self::SortedFigures(_)).then_some("ascending");
        let (class, text) = match self {
            Self::Text(text) | Self::SortsText(text) => (Some("word"), text),
            Self::Bar => (Some("word"), ""),
            Self::Figure(text) | Self::SortsFigures(text) | Self::SortedFigures(text) => {
                (None, text)
            }
        };
        html! {
            th scope="col" class=[class] aria-sort=[order] {
                @if self.sorts() { button type="button" { (text) } } @else { (text) }
                @if self == Self::Bar { span class="hidden-text" { "bar" } }
            }
        }
    }
}

/// Returns a table that scrolls within a region of this name.
pub fn table(name: &str, headings: &[Heading<'_>], rows: &Markup) -> Markup {
    captioned_table(name, None, headings, rows)
}

pub(super) fn captioned_table(
    name: &str,
    caption: Option<Markup>,
    headings: &[Heading<'_>],
    rows: &Markup,
) -> Markup {
    let sorts = headings.iter().any(|heading| heading.sorts());
    html! {
        div class="scroll" tabindex="0" role="region" aria-label=(name) {
            table class=[sorts.then_some("sortable")] {
                @if let Some(caption) = caption { caption { (caption) } }
                thead { tr { @for heading in headings { (heading.cell()) } } }
                tbody { (rows) }
            }
        }
    }
}

/// Returns a section with its heading; the id of the heading is derived from `id`.
pub fn section(id: &str, title: &str, body: &Markup) -> Markup {
    let heading = format!("{id}-title");
    html! {
        section id=(id) aria-labelledby=(heading) {
            h2 id=(heading) { (title) }
            (body)
        }
    }
}

/// Returns a command with a button to copy it.
pub(super) fn command(text: &str) -> Markup {
    html! {
        div class="command" {
            pre { code { (text) } }
            button type="button" data-copy="yes" aria-label={ "Copy the command " (text) } {
                "Copy"
            }
        }
    }
}

/// Returns an explanation below the heading of a section.
pub(super) fn about(text: &str) -> Markup {
    html! { p class="soft" { (text) } }
}
