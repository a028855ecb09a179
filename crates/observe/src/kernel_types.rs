//! The kernel's type information (BTF), without the types that the programs do not read.
//!
//! The complete BTF has some hundred thousand types. The loader creates an object with a list of
//! members for each, which takes 25 ms, and searches all of them for each type of a program.
//!
//! The format: <https://docs.kernel.org/bpf/btf.html>.

use std::collections::HashSet;

use aya_obj::btf::BtfKind;

const HEADER_LENGTH: usize = 24;
const MAGIC_NUMBER: u16 = 0xeb9f;

/// Length of the fixed part of a type: name, kind and number of members, size or type.
const TYPE_LENGTH: usize = 12;

/// The BTF of the kernel or of a program.
pub(crate) struct Types<'a> {
    header: &'a [u8],
    /// The types by id; id 0 is `void` and has no bytes.
    types: Vec<&'a [u8]>,
    strings: &'a [u8],
}

impl<'a> Types<'a> {
    /// Parses BTF. `None` if it is not in the byte order of this machine, or has kinds of types
    /// that were unknown when this was written.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let magic = u16::from_ne_bytes(bytes.first_chunk().copied()?);
        let header = bytes.get(..number(bytes, 4)?)?;
        if magic != MAGIC_NUMBER || header.len() < HEADER_LENGTH {
            return None;
        }
        let section = |at| {
            let (start, length) = (number(header, at)?, number(header, at + 4)?);
            bytes.get(header.len()..)?.get(start..)?.get(..length)
        };
        let (mut left, strings) = (section(8)?, section(16)?);
        let mut types = vec![&left[..0]];
        while !left.is_empty() {
            let (one, rest) = left.split_at_checked(length(left)?)?;
            types.push(one);
            left = rest;
        }
        Some(Self { header, types, strings })
    }

    /// Returns the names of the types that have one, without the flavour that a program may add to
    /// distinguish versions of a structure (`request___old`).
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a [u8]> {
        let names = self.types.iter().map(|one| essential(self.name(one)));
        names.filter(|name| !name.is_empty())
    }

    /// Returns the BTF of only the types with these names and those that they contain. Their ids
    /// are not those of the kernel, and pointers to other types point to `void`.
    pub(crate) fn reduced_to(&self, names: &HashSet<&[u8]>) -> Vec<u8> {
        let needed = self.needed(names);
        let mut last = 0;
        let numbers: Vec<u32> = needed
            .iter()
            .map(|is_needed| {
                last += u32::from(*is_needed);
                if *is_needed { last } else { 0 }
            })
            .collect();
        let mut body = Vec::new();
        for (one, _) in self.types.iter().zip(needed).filter(|(_, is_needed)| *is_needed) {
            let start = body.len();
            body.extend_from_slice(one);
            for at in parts(one).into_iter().chain(distant(one)) {
                let new = number(one, at).and_then(|old| numbers.get(old)).unwrap_or(&0);
                body[start + at..][..4].copy_from_slice(&new.to_ne_bytes());
            }
        }
        self.with_types(&body)
    }

    /// Returns the BTF of all types with the kernel's ids, which are required to attach a program.
    /// Types that have members lose their names and members.
    pub(crate) fn without_members(&self) -> Vec<u8> {
        let mut body = Vec::new();
        for one in &self.types {
            if has_members(kind(one)) {
                body.extend_from_slice(&hollow(one));
            } else {
                body.extend_from_slice(one);
            }
        }
        self.with_types(&body)
    }

    /// Returns the id of a function.
    pub(crate) fn function(&self, name: &str) -> Option<u32> {
        let is_wanted =
            |one: &&[u8]| kind(one) == BtfKind::Func && self.name(one) == name.as_bytes();
        self.types.iter().position(is_wanted)?.try_into().ok()
    }

    /// Returns whether a structure has a member of this name.
    pub(crate) fn has_member(&self, structure: &str, member: &str) -> bool {
        let is_wanted =
            |one: &&&[u8]| kind(one) == BtfKind::Struct && self.name(one) == structure.as_bytes();
        self.types.iter().find(is_wanted).is_some_and(|one| {
            // Like a type, a member starts with its name.
            one[TYPE_LENGTH..].chunks(12).any(|part| self.name(part) == member.as_bytes())
        })
    }

    fn with_types(&self, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_ne_bytes();
        let mut bytes = self.header.to_vec();
        bytes[8..12].fill(0);
        bytes[12..16].copy_from_slice(&length);
        bytes[16..20].copy_from_slice(&length);
        bytes.extend_from_slice(body);
        bytes.extend_from_slice(self.strings);
        bytes
    }

    /// Returns for each type whether it has one of these names, or is contained in one that has.
    /// The target of a pointer is not contained.
    fn needed(&self, names: &HashSet<&[u8]>) -> Vec<bool> {
        let is_named = |one: &[u8]| {
            (has_members(kind(one)) || kind(one) == BtfKind::Typedef)
                && names.contains(essential(self.name(one)))
        };
        let mut needed: Vec<bool> = self.types.iter().map(|one| is_named(one)).collect();
        let ids = 0..self.types.len();
        let mut left: Vec<usize> = ids.filter(|id| needed[*id]).collect();
        while let Some(id) = left.pop() {
            let one = self.types[id];
            for part in parts(one).into_iter().filter_map(|at| number(one, at)) {
                if needed.get(part) == Some(&false) {
                    needed[part] = true;
                    left.push(part);
                }
            }
        }
        needed
    }

    fn name(&self, one: &[u8]) -> &'a [u8] {
        let start = number(one, 0).and_then(|at| self.strings.get(at..)).unwrap_or_default();
        start.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

/// Returns the offsets in a type at which it has the ids of types that it contains.
fn parts(one: &[u8]) -> Vec<usize> {
    match kind(one) {
        BtfKind::Struct | BtfKind::Union => (TYPE_LENGTH + 4..one.len()).step_by(12).collect(),
        BtfKind::Array => vec![TYPE_LENGTH],
        BtfKind::Typedef
        | BtfKind::Volatile
        | BtfKind::Const
        | BtfKind::Restrict
        | BtfKind::TypeTag => vec![8],
        _ => Vec::new(),
    }
}

/// Returns the offset in a type at which it has the id of a type that it does not contain.
fn distant(one: &[u8]) -> Option<usize> {
    match kind(one) {
        BtfKind::Ptr => Some(8),
        // The type of its index.
        BtfKind::Array => Some(TYPE_LENGTH + 4),
        _ => None,
    }
}

fn hollow(one: &[u8]) -> [u8; TYPE_LENGTH] {
    let mut bytes = [0; TYPE_LENGTH];
    bytes.copy_from_slice(&one[..TYPE_LENGTH]);
    bytes[..4].fill(0);
    // The number of members is in the lower half of this word.
    let information = word(one, 4).unwrap_or(0) & 0xffff_0000;
    bytes[4..8].copy_from_slice(&information.to_ne_bytes());
    bytes
}

/// Returns the length of the first type in bytes; `None` for an unknown kind.
fn length(types: &[u8]) -> Option<usize> {
    let members = word(types, 4)? as usize & 0xffff;
    let further = match kind(types) {
        BtfKind::Unknown => return None,
        BtfKind::Int | BtfKind::Var | BtfKind::DeclTag => 4,
        BtfKind::Array => 12,
        BtfKind::Struct | BtfKind::Union | BtfKind::DataSec | BtfKind::Enum64 => 12 * members,
        BtfKind::Enum | BtfKind::FuncProto => 8 * members,
        _ => 0,
    };
    Some(TYPE_LENGTH + further)
}

fn has_members(of: BtfKind) -> bool {
    use BtfKind::{DataSec, Enum, Enum64, FuncProto, Struct, Union};
    matches!(of, Struct | Union | Enum | FuncProto | DataSec | Enum64)
}

fn kind(one: &[u8]) -> BtfKind {
    let information = word(one, 4).unwrap_or(0);
    BtfKind::try_from(information >> 24 & 0x1f).unwrap_or_default()
}

fn essential(name: &[u8]) -> &[u8] {
    let flavour = name.windows(3).position(|part| part == b"___");
    flavour.map_or(name, |at| &name[..at])
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_ne_bytes(*word))
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    word(bytes, at).map(|word| word as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRINGS: &[&str] = &["", "file", "state", "other", "number", "alias"];

    fn name(of: &str) -> u32 {
        let before = STRINGS.iter().take_while(|string| **string != of);
        before.map(|string| string.len() as u32 + 1).sum()
    }

    fn described(types: &[&[u32]]) -> Vec<u8> {
        let strings = STRINGS.join("\0") + "\0";
        let body: Vec<u8> = types
            .iter()
            .flat_map(|words| words.iter())
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        let (body_length, string_length) = (body.len() as u32, strings.len() as u32);
        let mut bytes = MAGIC_NUMBER.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        for word in [HEADER_LENGTH as u32, 0, body_length, body_length, string_length] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(body);
        bytes.extend(strings.bytes());
        bytes
    }

    fn header(of: &str, kind: BtfKind, members: u32, last: u32) -> [u32; 3] {
        [name(of), (kind as u32) << 24 | members, last]
    }

    /// 1 a number, 2 `struct file` with a `state` (through an alias) and a pointer to `struct
    /// other`, 3 the alias, 4 `struct state`, 5 the pointer, 6 `struct other`.
    fn six() -> Vec<u8> {
        let member = |of: u32| [name("number"), of, 0];
        let number = [&header("number", BtfKind::Int, 0, 4)[..], &[32]].concat();
        let file = [header("file", BtfKind::Struct, 2, 16), member(3), member(5)].concat();
        let alias = header("alias", BtfKind::Typedef, 0, 4);
        let state = [header("state", BtfKind::Struct, 1, 4), member(1)].concat();
        let pointer = header("", BtfKind::Ptr, 0, 6);
        let other = [header("other", BtfKind::Struct, 1, 4), member(1)].concat();
        described(&[&number, &file, &alias, &state, &pointer, &other])
    }

    #[test]
    fn only_what_a_named_type_contains_is_left_and_numbered_anew() {
        let bytes = six();
        let whole = Types::parse(&bytes).unwrap();
        let bytes = whole.reduced_to(&HashSet::from([&b"state"[..], b"other"]));
        let reduced = Types::parse(&bytes).unwrap();
        assert_eq!(reduced.names().collect::<Vec<_>>(), [&b"number"[..], b"state", b"other"]);
        assert_eq!(reduced.types[1..3], [whole.types[1], whole.types[4]]);
        let bytes = whole.reduced_to(&HashSet::from([&b"file"[..]]));
        let reduced = Types::parse(&bytes).unwrap();
        assert_eq!(reduced.types[1..5], whole.types[1..5]);
        assert_eq!(reduced.types.len(), 6);
        // The target of the pointer is not included.
        assert_eq!((kind(reduced.types[5]), word(reduced.types[5], 8)), (BtfKind::Ptr, Some(0)));
    }

    #[test]
    fn members_are_found_by_name_in_the_structure_that_has_them() {
        let bytes = six();
        let types = Types::parse(&bytes).unwrap();
        assert!(types.has_member("state", "number") && types.has_member("file", "number"));
        assert!(!types.has_member("state", "alias"));
        assert!(!types.has_member("alias", "number") && !types.has_member("none", "number"));
    }

    #[test]
    fn without_members_types_keep_their_numbers() {
        let bytes = six();
        let whole = Types::parse(&bytes).unwrap();
        let bytes = whole.without_members();
        let hollow = Types::parse(&bytes).unwrap();
        let kinds = |types: &Types<'_>| types.types.iter().map(|one| kind(one)).collect::<Vec<_>>();
        assert_eq!(kinds(&hollow), kinds(&whole));
        assert_eq!(hollow.names().collect::<Vec<_>>(), [&b"number"[..], b"alias"]);
        assert_eq!(hollow.types[2].len(), TYPE_LENGTH);
    }

    #[test]
    fn an_alias_brings_what_it_stands_for() {
        let bytes = six();
        let reduced = Types::parse(&bytes).unwrap().reduced_to(&HashSet::from([&b"alias"[..]]));
        let names: Vec<Vec<u8>> = Types::parse(&reduced).unwrap().names().map(Vec::from).collect();
        assert_eq!(names, [&b"number"[..], b"alias", b"state"]);
    }

    #[test]
    fn a_flavour_is_not_part_of_the_name() {
        assert_eq!(essential(b"request___old"), b"request");
        assert_eq!(essential(b"kernel__type"), b"kernel__type");
    }

    #[test]
    fn what_is_cut_off_or_unknown_is_refused() {
        let bytes = six();
        for end in 0..bytes.len() {
            assert!(Types::parse(&bytes[..end]).is_none(), "{end} bytes");
        }
        let unknown = described(&[&header("file", BtfKind::Unknown, 0, 0)]);
        assert!(Types::parse(&unknown).is_none());
    }
}
