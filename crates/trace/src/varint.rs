//! Unsigned LEB128 numbers, and a bounds-checked reader of bytes.

use crate::error::{TraceError, TraceLocation};

pub(crate) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Returns the number of bytes that [`put`] writes.
pub(crate) fn width(number: u64) -> u32 {
    (64 - (number | 1).leading_zeros()).div_ceil(7)
}

/// Maps small positive and negative differences to small numbers: 0, -1, 1, -2, …
pub(crate) fn zigzag(difference: i64) -> u64 {
    (difference << 1 ^ difference >> 63).cast_unsigned()
}

pub(crate) fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

/// Decodes numbers from bytes that start at file offset `origin`.
pub(crate) struct ByteReader<'a> {
    bytes: &'a [u8],
    at: usize,
    origin: u64,
}

impl<'a> ByteReader<'a> {
    pub(crate) fn new(bytes: &'a [u8], origin: u64) -> Self {
        Self { bytes, at: 0, origin }
    }

    pub(crate) fn place(&self) -> TraceLocation {
        TraceLocation::Byte(self.origin + self.at as u64)
    }

    pub(crate) fn wrong(&self, problem: &str) -> TraceError {
        TraceError::at(self.place(), problem)
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, TraceError> {
        let byte = self.bytes.get(self.at).copied();
        self.at += usize::from(byte.is_some());
        byte.ok_or_else(|| self.wrong("it ends in the middle of a record"))
    }

    #[inline]
    pub(crate) fn number(&mut self) -> Result<u64, TraceError> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.wrong("a number has more than 64 bits"))
    }

    pub(crate) fn small(&mut self) -> Result<u32, TraceError> {
        let number = self.number()?;
        u32::try_from(number).map_err(|_| self.wrong("a number has more than 32 bits"))
    }

    /// Reads the number of following items. Each item takes at least one byte, which bounds it.
    pub(crate) fn count(&mut self) -> Result<usize, TraceError> {
        let count = self.number()?;
        if count > (self.bytes.len() - self.at) as u64 {
            return Err(self.wrong("it says that it has more than it has"));
        }
        Ok(count as usize)
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], TraceError> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        let taken = end.map(|end| &self.bytes[self.at..end]);
        let taken = taken.ok_or_else(|| self.wrong("it ends in the middle of a text"))?;
        self.at += length;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_width_and_come_back() {
        for number in [0, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            assert_eq!(bytes.len() as u32, width(number), "{number}");
            assert_eq!(ByteReader::new(&bytes, 0).number(), Ok(number));
            assert_eq!(unzigzag(zigzag(number.cast_signed())), number.cast_signed());
        }
        assert_eq!([0, -1, 1, -2].map(zigzag), [0, 1, 2, 3]);
        assert!(ByteReader::new(&[0xff; 10], 0).number().is_err());
    }
}
