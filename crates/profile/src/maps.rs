//! Code mappings of a process, from `/proc/PID/maps`.

use std::sync::Arc;

/// An executable mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeMapping {
    pub start: u64,
    pub end: u64,
    /// Offset in the file at which the mapping begins.
    pub offset: u64,
    /// Path of the file, shared with the stacks that refer to it.
    pub path: Arc<str>,
}

/// Returns the executable mappings in the text, sorted by address. Skips lines that cannot be
/// parsed: the text may be truncated.
pub(crate) fn parse_maps(text: &str) -> Vec<CodeMapping> {
    let mut maps: Vec<CodeMapping> = text.lines().filter_map(mapping).collect();
    maps.sort_by_key(|map| map.start);
    maps
}

fn mapping(line: &str) -> Option<CodeMapping> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let _rights = words.next().filter(|rights| rights.contains('x'))?;
    let offset = words.next()?;
    let (_device, _inode) = (words.next()?, words.next()?);
    let path = words.next().unwrap_or_default().trim_start();
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    Some(CodeMapping {
        start: hex(start)?,
        end: hex(end)?,
        offset: hex(offset)?,
        path: path.trim_end_matches(" (deleted)").into(),
    })
}

/// Returns the mapping that contains an address.
pub(crate) fn find(maps: &[CodeMapping], address: u64) -> Option<&CodeMapping> {
    let behind = maps.partition_point(|map| map.start <= address);
    maps[..behind].last().filter(|map| address < map.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_of_code_have_a_range_an_offset_and_a_path_with_blanks() {
        let text = "7f00-7f10 r-xp 0 00:00 0 \n55e0-55f0 rw-p 0 00:00 0 [heap]\n\
             55d0-55e0 r-xp 00001000 fe:00 42    /opt/a b/prog\nx";
        let maps = parse_maps(text);
        assert_eq!(maps.len(), 2);
        assert_eq!(&*maps[0].path, "/opt/a b/prog");
        assert_eq!(find(&maps, 0x55d8).map(|map| map.offset), Some(0x1000));
        assert_eq!(find(&maps, 0x7f0f), Some(&maps[1]));
        assert!([0x7f10, 0x55d0 - 1, 0x55e8].iter().all(|at| find(&maps, *at).is_none()));
    }

    #[test]
    fn no_text_breaks_it() {
        let seed = b"55d0-55e0 r-xp 00001000 fe:00 42    /opt/prog\n".to_vec();
        let runs = testkit::fuzz::run(testkit::fuzz::budget(), &[seed], |bytes| {
            let maps = parse_maps(&String::from_utf8_lossy(bytes));
            assert!(maps.len() <= bytes.len() / 4, "a mapping has a line of its own");
        });
        assert!(runs > 0);
    }
}
