//! Maps the bytes of an array to its members.

use crate::spec::{ArraySpec, Level, RowMembers};

/// A byte range on one column of the array (a member, or the members that mirror each other).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The column; for parity levels, the member.
    pub(super) column: usize,
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// The part of one row of a parity array that a request covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct GeometryRow {
    pub(super) number: u64,
    /// The range of the request within the row's data in bytes; the end is exclusive.
    pub(super) from: u64,
    pub(super) to: u64,
}

/// The layout of an array: its columns, chunk size and capacity.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    level: Level,
    members: u64,
    chunk: u64,
    /// Columns with data in each row.
    data: u64,
    /// Members with parity in each row.
    pub(super) parity: u64,
    /// Members that hold copies of the same column.
    pub(super) copies: u64,
    pub(super) capacity: u64,
}

impl Geometry {
    /// Creates the geometry of a valid array whose members have `member` bytes.
    pub(super) fn new(spec: &ArraySpec, member: u64) -> Self {
        let members = spec.members as u64;
        let RowMembers { data, parity, copies } = spec.level.row_members(members);
        let (chunk, capacity) = (spec.chunk_bytes(member), spec.usable_bytes(member));
        Self { level: spec.level, members, chunk, data, parity, copies, capacity }
    }

    /// Returns the number of consecutive bytes on one member before the layout moves to the next.
    pub(super) fn chunk(&self) -> u64 {
        self.chunk
    }

    /// Splits a range at chunk boundaries, in order; for parity levels, columns are members.
    pub(super) fn list(&self, offset: u64, length: u64) -> Vec<Piece> {
        self.pieces(offset, length).collect()
    }

    pub(super) fn pieces(&self, offset: u64, length: u64) -> impl Iterator<Item = Piece> + use<> {
        let (this, mut at, end) = (*self, offset, offset + length);
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let (chunk, within) = (at / this.chunk, at % this.chunk);
            let taken = (this.chunk - within).min(end - at);
            let (row, column) = (chunk / this.data, chunk % this.data);
            let column = this.member_of(row, column);
            at += taken;
            Some(Piece { column, offset: row * this.chunk + within, length: taken })
        })
    }

    /// Returns the rows that a range touches.
    pub(super) fn rows(
        &self,
        offset: u64,
        length: u64,
    ) -> impl Iterator<Item = GeometryRow> + use<> {
        let width = self.chunk * self.data;
        let end = offset + length;
        (offset / width..end.div_ceil(width)).map(move |number| {
            let start = number * width;
            GeometryRow {
                number,
                from: offset.max(start) - start,
                to: end.min(start + width) - start,
            }
        })
    }

    /// Returns the parity pieces for a part of a row's data: the same range of a chunk, or the
    /// whole chunk if the part crosses a chunk boundary.
    pub(super) fn parity_list(&self, row: GeometryRow) -> Vec<Piece> {
        let (from, to) = if row.from / self.chunk == (row.to - 1) / self.chunk {
            (row.from % self.chunk, (row.to - 1) % self.chunk + 1)
        } else {
            (0, self.chunk)
        };
        let offset = row.number * self.chunk + from;
        (0..self.parity)
            .map(|index| self.parity_member(row.number, index))
            .map(|column| Piece { column, offset, length: to - from })
            .collect()
    }

    /// Returns whether a request covers all data of a row.
    pub(super) fn is_whole(&self, row: GeometryRow) -> bool {
        row.from == 0 && row.to == self.chunk * self.data
    }

    /// Returns the array offset of the row's first data byte.
    pub(super) fn row_start(&self, row: GeometryRow) -> u64 {
        row.number * self.chunk * self.data
    }

    /// Returns the number of data bytes in a row.
    pub(super) fn row_length(&self) -> u64 {
        self.chunk * self.data
    }

    /// Returns the member that holds a column, in md's left-symmetric layout: parity moves one
    /// member to the left with each row, and data starts on the member after the parity.
    fn member_of(&self, row: u64, column: u64) -> usize {
        match self.level {
            Level::Raid5 | Level::Raid6 => {
                let last_parity = self.parity_member(row, self.parity - 1) as u64;
                ((last_parity + 1 + column) % self.members) as usize
            }
            _ => column as usize,
        }
    }

    fn parity_member(&self, row: u64, index: u64) -> usize {
        let first = self.members - 1 - row % self.members;
        ((first + index) % self.members) as usize
    }
}

#[cfg(test)]
mod tests {
    use units::Bytes;

    use super::*;

    const CHUNK: u64 = 64 << 10;

    fn geometry(level: Level, members: usize) -> Geometry {
        let spec = ArraySpec::new(level, members, Bytes::new(CHUNK));
        Geometry::new(&spec, 1 << 30)
    }

    #[test]
    fn stripes_go_round_the_columns() {
        let array = geometry(Level::Raid10, 12);
        assert_eq!(array.capacity, 6 << 30);
        let list = array.list(5 * CHUNK + 100, CHUNK);
        assert_eq!(list[0], Piece { column: 5, offset: 100, length: CHUNK - 100 });
        assert_eq!(list[1], Piece { column: 0, offset: CHUNK, length: 100 });
    }

    #[test]
    fn a_mirror_is_one_column() {
        let array = geometry(Level::Raid1, 2);
        let list = array.list(12345, 1 << 20);
        assert_eq!(list, [Piece { column: 0, offset: 12345, length: 1 << 20 }]);
    }

    #[test]
    fn parity_levels_use_each_member_once_in_a_row() {
        for (level, members) in [(Level::Raid5, 4), (Level::Raid6, 6)] {
            let array = geometry(level, members);
            let width = array.row_length();
            for number in 0..20 {
                let mut seen: Vec<usize> =
                    array.list(number * width, width).iter().map(|p| p.column).collect();
                let row = GeometryRow { number, from: 0, to: width };
                seen.extend(array.parity_list(row).iter().map(|piece| piece.column));
                seen.sort_unstable();
                assert_eq!(seen, (0..members).collect::<Vec<_>>(), "{level:?} row {number}");
            }
        }
    }

    #[test]
    fn consecutive_chunks_of_raid5_lie_on_consecutive_members() {
        let array = geometry(Level::Raid5, 4);
        let columns: Vec<usize> =
            array.list(0, 12 * CHUNK).iter().map(|piece| piece.column).collect();
        assert_eq!(columns, [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
    }
}
