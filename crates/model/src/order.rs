//! A list of numbered items in the order of their last use.

const LIST_END: u32 = u32::MAX;

/// Items in the order of their last use; unused items come first, by number.
#[derive(Clone, Debug)]
pub(crate) struct LruList {
    /// For each item, the items used before and after it.
    links: Vec<(u32, u32)>,
    oldest: u32,
    newest: u32,
}

impl LruList {
    /// Creates a list of `count` unused items, at least one.
    pub(crate) fn new(count: usize) -> Self {
        let last = count.max(1) as u32 - 1;
        let before = |number: u32| number.checked_sub(1).unwrap_or(LIST_END);
        let after = |number| if number == last { LIST_END } else { number + 1 };
        let links = (0..=last).map(|number| (before(number), after(number))).collect();
        Self { links, oldest: 0, newest: last }
    }

    /// Returns the least recently used item.
    pub(crate) fn oldest(&self) -> usize {
        self.oldest as usize
    }

    pub(crate) fn use_again(&mut self, index: usize) {
        let this = index as u32;
        if this == self.newest {
            return;
        }
        let (before, after) = self.links[index];
        match before {
            LIST_END => self.oldest = after,
            before => self.links[before as usize].1 = after,
        }
        // This item is not the newest, so there is a next one.
        self.links[after as usize].0 = before;
        self.links[self.newest as usize].1 = this;
        self.links[index] = (self.newest, LIST_END);
        self.newest = this;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_used_is_oldest_and_then_what_was_used_first() {
        let mut order = LruList::new(4);
        let mut seen = Vec::new();
        for used in [1, 1, 0, 3, 2, 0, 3] {
            order.use_again(used);
            seen.push(order.oldest());
        }
        assert_eq!(seen, [0, 0, 2, 2, 1, 1, 1]);
        let mut single = LruList::new(1);
        single.use_again(0);
        assert_eq!(single.oldest(), 0);
    }
}
