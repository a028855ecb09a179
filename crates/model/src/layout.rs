//! The layout of a file on the device, with the metadata that must be read.

use units::Bytes;

/// How a file system lays out a file on a device without fragmentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileLayout {
    /// One extent, as XFS or ext4 allocate for a file of moderate size if there is free space.
    #[default]
    Contiguous,
    /// ext3: twelve blocks, then an indirect block before each 1024 blocks (4 MiB), which must be
    /// read first. The reader waits for it in the middle of read-ahead, which halved the rate of
    /// the 2008 arrays. (The indirect blocks of the second and third level, one per 4 GiB and one
    /// per 4 TiB, are omitted.)
    Ext3,
}

/// The block size of an ext3 file system.
const BLOCK_BYTES: u64 = 4096;
/// Number of blocks that the inode addresses.
const DIRECT_BLOCKS: u64 = 12;
/// Number of blocks that one indirect block addresses.
const PER_INDIRECT: u64 = BLOCK_BYTES / 4;

/// A byte range of a file on the device, or a metadata block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskExtent {
    /// A block with the addresses of the following data; the reader waits for it.
    Metadata {
        offset: Bytes,
        length: Bytes,
    },
    Data {
        offset: Bytes,
        length: Bytes,
    },
}

impl FileLayout {
    /// Returns the reads for a range of a file that starts at `start` on the device, in order. Each
    /// call lists the metadata of each group of blocks in the range; a reader that has already read
    /// it can skip it.
    pub fn extents(self, start: Bytes, offset: Bytes, length: Bytes) -> Vec<DiskExtent> {
        let end = offset.get().saturating_add(length.get());
        match self {
            Self::Contiguous if end == offset.get() => Vec::new(),
            Self::Contiguous => vec![DiskExtent::Data { offset: start + offset, length }],
            Self::Ext3 => ext3(start.get(), offset.get(), end),
        }
    }

    /// Returns the space that a file of this size occupies on the device.
    pub fn footprint(self, size: Bytes) -> Bytes {
        match self {
            Self::Contiguous => size,
            Self::Ext3 => {
                let blocks = size.get().div_ceil(BLOCK_BYTES);
                let indirect = blocks.saturating_sub(DIRECT_BLOCKS).div_ceil(PER_INDIRECT);
                Bytes::new((blocks + indirect) * BLOCK_BYTES)
            }
        }
    }
}

fn ext3(start: u64, offset: u64, end: u64) -> Vec<DiskExtent> {
    let mut extents = Vec::new();
    let mut at = offset;
    while at < end {
        let block = at / BLOCK_BYTES;
        // Group 0 consists of the direct blocks and has no indirect block.
        let group =
            if block < DIRECT_BLOCKS { 0 } else { 1 + (block - DIRECT_BLOCKS) / PER_INDIRECT };
        let group_end = (DIRECT_BLOCKS + group * PER_INDIRECT) * BLOCK_BYTES;
        let length = Bytes::new(group_end.min(end) - at);
        if group > 0 {
            let first = DIRECT_BLOCKS + (group - 1) * PER_INDIRECT;
            let offset = Bytes::new(start + (first + group - 1) * BLOCK_BYTES);
            extents.push(DiskExtent::Metadata { offset, length: Bytes::new(BLOCK_BYTES) });
        }
        extents.push(DiskExtent::Data {
            offset: Bytes::new(start + at + group * BLOCK_BYTES),
            length,
        });
        at = group_end.min(end);
    }
    extents
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ext3_extents(offset: u64, length: u64) -> Vec<DiskExtent> {
        FileLayout::Ext3.extents(Bytes::ZERO, Bytes::new(offset), Bytes::new(length))
    }

    #[test]
    fn direct_blocks_need_nothing_else() {
        let data = DiskExtent::Data { offset: Bytes::new(100), length: Bytes::new(200) };
        assert_eq!(ext3_extents(100, 200), [data]);
    }

    #[test]
    fn an_indirect_block_stands_in_front_of_each_four_mib() {
        let mib4 = 4 << 20;
        let extents = ext3_extents(0, 48 * 1024 + 2 * mib4);
        let metadata: Vec<u64> = extents
            .iter()
            .filter_map(|extent| match extent {
                DiskExtent::Metadata { offset, .. } => Some(offset.get()),
                DiskExtent::Data { .. } => None,
            })
            .collect();
        assert_eq!(metadata, [48 * 1024, 48 * 1024 + 4096 + mib4]);
        let ends = FileLayout::Ext3.footprint(Bytes::new(48 * 1024 + 2 * mib4));
        assert_eq!(ends, Bytes::new(48 * 1024 + 2 * mib4 + 2 * 4096));
    }

    #[test]
    fn extents_follow_one_another_without_a_gap() {
        let mut at = 0;
        for extent in ext3_extents(0, 20 << 20) {
            let (DiskExtent::Metadata { offset, length } | DiskExtent::Data { offset, length }) =
                extent;
            assert_eq!(offset.get(), at);
            at += length.get();
        }
        assert_eq!(at, FileLayout::Ext3.footprint(Bytes::new(20 << 20)).get());
    }

    #[test]
    fn a_contiguous_file_is_one_piece() {
        let extents =
            FileLayout::Contiguous.extents(Bytes::new(7), Bytes::new(3), Bytes::from_mib(9));
        assert_eq!(
            extents,
            [DiskExtent::Data { offset: Bytes::new(10), length: Bytes::from_mib(9) }]
        );
        assert!(FileLayout::Contiguous.extents(Bytes::ZERO, Bytes::new(3), Bytes::ZERO).is_empty());
    }
}
