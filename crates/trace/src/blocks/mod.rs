//! FRTRACE2: a trace as blocks that are decoded independently (docs/trace-format.md).
//!
//! Each block has its own checksum, so damage affects only one block. An index at the end lists the
//! blocks. If the index is missing, a reader scans the blocks one after another.

mod copy;
mod index;
mod records;
mod source;
mod stream;
mod tables;
mod verify;
mod whole;
mod writer;

use std::io::Read;

use crate::error::{TraceError, TraceLocation};

pub use copy::TraceCopy;
pub(crate) use index::ThreadUse;
pub(crate) use records::{LastTransfers, decode_record};
pub use source::TraceBytes;
pub use stream::{TraceDamage, TraceStream};
pub(crate) use tables::open_file;
pub use verify::{TraceVerification, verify};
pub use writer::TraceWriter;

/// First bytes of a file in this format.
pub(crate) const BLOCK_MAGIC: &[u8; 8] = b"FRTRACE2";
/// Last bytes of a complete file.
const END_MAGIC: &[u8; 8] = b"FRTEND02";
/// Hint for users of a damaged trace.
pub(crate) const SAVE_HINT: &str = "`foreread trace convert OLD NEW` saves those";
/// Size of the file's start: [`BLOCK_MAGIC`] and a byte of flags.
const START_BYTES: u64 = 9;
/// Size of the file's end: the offset of the index and [`END_MAGIC`].
const END_BYTES: u64 = 16;
/// Size of a block header: kind, packing, length in the file, unpacked length, checksum.
const HEADER_BYTES: usize = 14;
/// Maximum number of records in a block: about 1 MB decoded, and 50 KiB in the file.
pub(crate) const BLOCK_RECORDS: usize = 1 << 14;
/// Maximum length of an unpacked block in bytes; larger blocks count as damaged.
const BLOCK_BYTES_MAX: usize = 1 << 26;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceBlockKind {
    /// Files, open files and threads that later blocks refer to.
    Tables,
    Records,
    Index,
}

impl TraceBlockKind {
    fn byte(self) -> u8 {
        match self {
            Self::Tables => b'T',
            Self::Records => b'R',
            Self::Index => b'I',
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Tables, Self::Records, Self::Index].into_iter().find(|kind| kind.byte() == byte)
    }
}

/// Continues the 64-bit FNV-1a `hash` with `bytes`. The result identifies a trace.
pub(crate) fn fold(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The initial value for [`fold`]: the hash of no bytes.
pub(crate) const EMPTY_DIGEST: u64 = 0xcbf2_9ce4_8422_2325;

#[derive(Clone, Copy, Debug)]
struct BlockHeader {
    kind: TraceBlockKind,
    is_packed: bool,
    /// Bytes in the file after the header.
    stored: u32,
    unpacked: u32,
    checksum: u32,
}

impl BlockHeader {
    fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[at + byte]));
        let header = Self {
            kind: TraceBlockKind::from_byte(bytes[0])?,
            is_packed: bytes[1] == 1,
            stored: number(2),
            unpacked: number(6),
            checksum: number(10),
        };
        let lengths = [header.stored, header.unpacked];
        let fits = lengths.iter().all(|length| *length as usize <= BLOCK_BYTES_MAX);
        (bytes[1] <= 1 && fits).then_some(header)
    }
}

/// Encodes a block as stored in the file. The payload is packed if that is allowed and makes it
/// smaller.
fn encode_block(kind: TraceBlockKind, payload: &[u8], may_pack: bool) -> Vec<u8> {
    let mut packer = flate2::read::DeflateEncoder::new(payload, flate2::Compression::fast());
    let mut packed = Vec::with_capacity(payload.len() / 2);
    let is_packed =
        may_pack && packer.read_to_end(&mut packed).is_ok() && packed.len() < payload.len();
    let stored = if is_packed { packed.as_slice() } else { payload };
    let mut block = vec![kind.byte(), u8::from(is_packed)];
    block.extend_from_slice(&(stored.len() as u32).to_le_bytes());
    block.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    block.extend_from_slice(&checksum(&block, stored).to_le_bytes());
    block.extend_from_slice(stored);
    block
}

fn checksum(header: &[u8], stored: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&header[..HEADER_BYTES - 4]);
    hasher.update(stored);
    hasher.finalize()
}

/// Returns the header of a block at file offset `origin` if its checksum is correct.
fn check_block(bytes: &[u8], origin: u64) -> Result<BlockHeader, TraceError> {
    let wrong = |problem: &str| TraceError::at(TraceLocation::Byte(origin), problem);
    let head = bytes.first_chunk::<HEADER_BYTES>();
    let head = head.ok_or_else(|| wrong("the block is cut short"))?;
    let header = BlockHeader::from_bytes(head).ok_or_else(|| wrong("no block begins here"))?;
    let stored = &bytes[HEADER_BYTES..];
    if stored.len() != header.stored as usize {
        return Err(wrong("the block is cut short"));
    }
    if checksum(head, stored) != header.checksum {
        return Err(wrong("the checksum of the block is wrong"));
    }
    Ok(header)
}

/// Returns the payload of a block at file offset `origin`.
fn decode_block(bytes: &[u8], origin: u64) -> Result<(TraceBlockKind, Vec<u8>), TraceError> {
    let wrong = |problem: &str| TraceError::at(TraceLocation::Byte(origin), problem);
    let header = check_block(bytes, origin)?;
    let stored = &bytes[HEADER_BYTES..];
    let unpacked = header.unpacked as usize;
    let payload = match header.is_packed {
        false => stored.to_vec(),
        true => {
            let mut payload = Vec::with_capacity(unpacked);
            let unpacker = flate2::read::DeflateDecoder::new(stored);
            let read = unpacker.take(unpacked as u64 + 1).read_to_end(&mut payload);
            read.map_err(|_| wrong("the block cannot be unpacked"))?;
            payload
        }
    };
    if payload.len() != unpacked {
        return Err(wrong("the block unpacks to another length than it says"));
    }
    Ok((header.kind, payload))
}

#[cfg(test)]
mod tests;
