//! A table of items in progress, which small reusable indices identify.

/// The index of an item; 32 bits suffice for every table.
pub(crate) type SlotIndex = u32;

#[derive(Debug)]
pub(crate) struct Slots<T> {
    places: Vec<Option<T>>,
    free: Vec<SlotIndex>,
}

impl<T> Slots<T> {
    pub(crate) fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    /// Adds an item and returns its index.
    #[inline]
    pub(crate) fn insert(&mut self, thing: T) -> SlotIndex {
        match self.free.pop() {
            Some(slot) => {
                self.places[slot as usize] = Some(thing);
                slot
            }
            None => {
                self.places.push(Some(thing));
                (self.places.len() - 1) as SlotIndex
            }
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: SlotIndex) -> Option<&mut T> {
        self.places.get_mut(slot as usize)?.as_mut()
    }

    /// Removes and returns an item; its index may be reused.
    #[inline]
    pub(crate) fn remove(&mut self, slot: SlotIndex) -> Option<T> {
        let thing = self.places.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        Some(thing)
    }
}
