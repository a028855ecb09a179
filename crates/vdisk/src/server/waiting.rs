//! The model's requests, found by id without a search.

use model::RequestId;

/// Entries whose ids are never reused.
#[derive(Debug)]
pub(crate) struct Waiting<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    count: usize,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    entry: Option<T>,
}

impl<T> Waiting<T> {
    /// Creates a table with space for `capacity` entries without further allocation.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { slots: Vec::with_capacity(capacity), free: Vec::with_capacity(capacity), count: 0 }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn insert(&mut self, entry: T) -> RequestId {
        self.count += 1;
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, entry: None });
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.entry = Some(entry);
        RequestId(u64::from(slot.generation) << 32 | u64::from(index))
    }

    /// Removes the entry with `id`; `None` if it was already removed.
    pub(crate) fn take(&mut self, id: RequestId) -> Option<T> {
        let (generation, index) = ((id.0 >> 32) as u32, id.0 as u32);
        let slot = self.slots.get_mut(index as usize)?;
        if slot.generation != generation {
            return None;
        }
        let entry = slot.entry.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
        self.count -= 1;
        Some(entry)
    }

    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = T> {
        self.count = 0;
        let free = &mut self.free;
        self.slots.iter_mut().enumerate().filter_map(|(index, slot)| {
            let entry = slot.entry.take()?;
            slot.generation = slot.generation.wrapping_add(1);
            free.push(index as u32);
            Some(entry)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_good_for_one_taking() {
        let mut waiting = Waiting::with_capacity(2);
        let first = waiting.insert("a");
        let second = waiting.insert("b");
        assert_eq!(waiting.take(first), Some("a"));
        assert_eq!(waiting.take(first), None);
        let third = waiting.insert("c");
        assert_ne!(first, third);
        assert_eq!(waiting.take(first), None);
        assert_eq!(waiting.count(), 2);
        assert_eq!(waiting.take_all().collect::<Vec<_>>(), ["c", "b"]);
        assert_eq!((waiting.take(second), waiting.count()), (None, 0));
        assert_eq!(waiting.take(RequestId(u64::MAX)), None);
    }
}
