//! Elements of a manual page.

pub struct Section {
    pub title: String,
    pub blocks: Vec<Block>,
}

pub enum Block {
    /// A paragraph, as one line.
    Text(String),
    /// Lines that are printed verbatim.
    Verbatim(String),
    /// A term and its explanation, one line for each paragraph.
    Item(String, Vec<String>),
}
