//! Places for things under way, named by small numbers that are used again.

/// The place of a thing in its table; of so many things under way no table ever holds.
pub(crate) type SlotIndex = u32;

/// A table of things under way.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    places: Vec<Option<T>>,
    free: Vec<SlotIndex>,
}

impl<T> Slots<T> {
    /// A table with nothing in it.
    pub(crate) fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    /// Puts something in and names its place.
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

    /// Takes it out; its place may be used again.
    #[inline]
    pub(crate) fn remove(&mut self, slot: SlotIndex) -> Option<T> {
        let thing = self.places.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        Some(thing)
    }
}
