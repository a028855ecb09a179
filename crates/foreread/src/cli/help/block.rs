//! What a manual page consists of.

pub struct Section {
    pub title: String,
    pub blocks: Vec<Block>,
}

pub enum Block {
    /// A paragraph, in one line.
    Text(String),
    /// Lines to show as they are.
    Verbatim(String),
    /// A term and its explanation, one line for each paragraph.
    Item(String, Vec<String>),
}
