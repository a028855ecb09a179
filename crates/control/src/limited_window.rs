//! Windows with the reason for their limit.

use units::Pages;

/// The reason why a window is not larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LimitReason {
    #[default]
    Step,
    Round,
    Memory,
    OtherReads,
    RandomReads,
    Harm,
    File,
    Runs,
    Original,
}

impl LimitReason {
    /// Returns the last clause of an explanation of a window.
    pub fn text(self) -> &'static str {
        match self {
            Self::Step => "not larger yet: windows grow in steps",
            Self::Round => "not larger: all streams should use up their windows within 2 s",
            Self::Memory => "not larger: its share of the memory, or --max, allows no more",
            Self::OtherReads => "not larger: other readers could get slower",
            Self::RandomReads => "not larger: the same readers also read at random",
            Self::Harm => "not larger: a larger window was not faster",
            Self::File => "not larger: the file has no more pages",
            Self::Runs => "not larger: its runs are not longer",
            Self::Original => "this is its original window",
        }
    }
}

/// A window with the reason for its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LimitedWindow {
    pub pages: Pages,
    pub reason: LimitReason,
}

impl LimitedWindow {
    pub fn new(pages: Pages, reason: LimitReason) -> Self {
        Self { pages, reason }
    }

    /// Returns this window, or `most` with its reason if that is not larger.
    pub fn at_most(self, most: Pages, reason: LimitReason) -> Self {
        if most <= self.pages { Self::new(most, reason) } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_limit_is_named() {
        let wish = LimitedWindow::new(Pages::new(512), LimitReason::Step);
        let of_file = wish.at_most(Pages::new(17), LimitReason::File);
        assert_eq!(of_file.at_most(Pages::new(2048), LimitReason::Memory), of_file);
        assert_eq!(of_file.reason.text(), "not larger: the file has no more pages");
    }
}
