//! Reads a trace file and decompresses it on the fly. Neither an endless file nor one with an
//! extreme compression ratio takes more memory than the limit.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::import::HEAD_BYTES;
use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use sys::input::{self, InputKind};

use crate::TraceFileError;

/// Maximum number of bytes that are decompressed at once.
const PIECE_BYTES: usize = 1 << 16;

/// Reads a file and returns its content with the result of `accept` for its start. If `accept`
/// fails, the rest is not read.
pub(crate) fn content<T>(
    path: &Path,
    accept: impl FnOnce(&[u8]) -> Result<T, TraceFileError>,
) -> Result<(Vec<u8>, T), TraceFileError> {
    let mut file = BufReader::new(input::open(path, InputKind::TRACE)?);
    let packing = match file.fill_buf() {
        Ok(start) => Packing::of(start),
        Err(reason) => return Err(file.get_ref().error(reason).into()),
    };
    let limit = InputKind::TRACE.limit().get();
    let result = match packing {
        Packing::None => whole((&mut file).take(u64::MAX), limit, accept),
        Packing::Gzip => whole(MultiGzDecoder::new(&mut file), limit, accept),
        Packing::Zstd => whole(ZstdFrames::new(&mut file), limit, accept),
    };
    result.map_err(|failure| match failure {
        Failure::Refused(error) => error,
        Failure::TooLarge => TraceFileError::TooLarge { path: path.to_owned() },
        Failure::Unreadable(reason) if packing == Packing::None => {
            file.get_ref().error(reason).into()
        }
        // The compressed file itself was too large, which decompressors report as their error.
        Failure::Unreadable(reason) if file.get_ref().is_exceeded() => {
            file.get_ref().error(io::Error::new(io::ErrorKind::FileTooLarge, reason)).into()
        }
        Failure::Unreadable(source) => TraceFileError::Packed { path: path.to_owned(), source },
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    None,
    Gzip,
    Zstd,
}

impl Packing {
    fn of(start: &[u8]) -> Self {
        match start {
            [0x1f, 0x8b, ..] => Self::Gzip,
            // A frame, or a skippable frame, which pzstd writes first.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            _ => Self::None,
        }
    }
}

enum Failure {
    Refused(TraceFileError),
    TooLarge,
    Unreadable(io::Error),
}

fn whole<T>(
    mut from: impl Read,
    limit: u64,
    accept: impl FnOnce(&[u8]) -> Result<T, TraceFileError>,
) -> Result<(Vec<u8>, T), Failure> {
    let mut content = Vec::new();
    let head = HEAD_BYTES as u64;
    input::fill(&mut from, &mut content, head).map_err(Failure::Unreadable)?;
    let accepted = accept(&content).map_err(Failure::Refused)?;
    input::fill(&mut from, &mut content, limit + 1).map_err(Failure::Unreadable)?;
    if content.len() as u64 > limit {
        return Err(Failure::TooLarge);
    }
    Ok((content, accepted))
}

/// All frames of a zstd file in sequence. Parallel compressors write many frames.
struct ZstdFrames<R> {
    from: R,
    decoder: FrameDecoder,
    /// Whether a frame has started and may have more data.
    inside: bool,
}

impl<R: BufRead> ZstdFrames<R> {
    fn new(from: R) -> Self {
        Self { from, decoder: FrameDecoder::new(), inside: false }
    }

    /// Advances to the start of the next frame with data; returns `false` at the end.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.from.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.from) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    let skipped = io::copy(&mut (&mut self.from).take(length), &mut io::sink())?;
                    if skipped < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(PIECE_BYTES);
        if most == 0 {
            return Ok(0);
        }
        loop {
            if !self.inside {
                self.inside = self.next_frame()?;
                if !self.inside {
                    return Ok(0);
                }
            }
            while self.decoder.can_collect() < most && !self.decoder.is_finished() {
                let wanted = BlockDecodingStrategy::UptoBytes(most - self.decoder.can_collect());
                self.decoder.decode_blocks(&mut self.from, wanted).map_err(io::Error::other)?;
            }
            match self.decoder.read(&mut buffer[..most])? {
                0 => self.inside = false,
                got => return Ok(got),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::fuzz;

    /// Returns a skippable frame, and two frames with the bytes `abc` and `def` in raw blocks.
    fn frames() -> Vec<u8> {
        let frame = |text: &[u8; 3]| {
            let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0x20, 3, 0x19, 0, 0];
            bytes.extend_from_slice(text);
            bytes
        };
        let skipped = [0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9].to_vec();
        [skipped, frame(b"abc"), frame(b"def")].concat()
    }

    #[test]
    fn all_frames_are_unpacked_and_skippable_ones_skipped() {
        let mut text = String::new();
        ZstdFrames::new(frames().as_slice()).read_to_string(&mut text).unwrap();
        assert_eq!(text, "abcdef");
        assert_eq!(Packing::of(&frames()), Packing::Zstd);
        for cut in [frames().len() - 1, 9, 15] {
            let cut = &frames()[..cut];
            assert!(ZstdFrames::new(cut).read_to_end(&mut Vec::new()).is_err(), "{}", cut.len());
        }
    }

    #[test]
    fn no_packed_file_panics() {
        let text: String = (0..500).map(|line| format!("{line},{}\n", line * 37 % 91)).collect();
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        let compressed = ruzstd::encoding::compress_to_vec(text.as_bytes(), level);
        let two = [compressed.as_slice(), &frames()].concat();
        let mut whole_text = String::new();
        ZstdFrames::new(two.as_slice()).read_to_string(&mut whole_text).unwrap();
        assert_eq!(whole_text, text + "abcdef");
        let inputs = fuzz::run(fuzz::budget(), &[frames(), compressed, two], |input| {
            let _ = whole(ZstdFrames::new(input), 1 << 20, |_| Ok(()));
            let _ = whole(MultiGzDecoder::new(input), 1 << 20, |_| Ok(()));
        });
        assert!(inputs > 3);
    }

    #[test]
    fn what_unpacks_to_more_than_the_limit_stops_there() {
        let fine = whole(io::repeat(0).take(100_000), 100_000, |_| Ok(()));
        assert_eq!(fine.ok().map(|(content, ())| content.len()), Some(100_000));
        let bomb = whole(io::repeat(0), 100_000, |_| Ok(()));
        assert!(matches!(bomb, Err(Failure::TooLarge)));
    }

    #[test]
    fn nothing_more_is_read_of_what_is_refused_at_its_beginning() {
        let mut refused = io::repeat(0).take(1 << 40);
        let none = || TraceFileError::NoFormat("none".to_owned());
        assert!(whole(&mut refused, 1 << 40, |_| Err::<(), _>(none())).is_err());
        assert_eq!(refused.limit(), (1 << 40) - HEAD_BYTES as u64);
    }
}
