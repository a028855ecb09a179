//! Functions and lines of stacks. Addresses are converted to file offsets while their process runs.
//! Symbols are looked up at the end, so that the lookup does not delay the program.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use indexmap::IndexSet;
use observe::{ProfileStack, WaitReason};

use crate::callers::CodeFiles;
use crate::classify::{classify, reads_data};
use crate::collect::StackIndex;
use crate::maps::{CodeMapping, find, parse_maps};
use crate::recording::{Frame, StackTrace, WaitClass};

/// The kernel's functions, sorted by address.
#[derive(Debug, Default)]
struct KernelSymbols(Vec<(u64, String)>);

impl KernelSymbols {
    fn read() -> Self {
        let text = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let mut symbols: Vec<(u64, String)> = text.lines().filter_map(kernel_symbol).collect();
        symbols.sort_unstable();
        Self(symbols)
    }

    /// Returns the index of the function at an address.
    fn place(&self, address: u64) -> Option<usize> {
        self.0.partition_point(|(start, _)| *start <= address).checked_sub(1)
    }

    fn name(&self, place: usize) -> &str {
        &self.0[place].1
    }
}

fn kernel_symbol(line: &str) -> Option<(u64, String)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok().filter(|it| *it != 0)?;
    let kind = words.next()?;
    let is_code = matches!(kind, "t" | "T" | "w" | "W");
    is_code.then(|| (address, words.next().unwrap_or_default().to_owned()))
}

/// Returns whether a function belongs to the probe that captured the stack.
fn is_of_probe(function: &str) -> bool {
    ["bpf_", "__bpf_", "__traceiter_"].iter().any(|start| function.starts_with(start))
}

/// An address of a process, as a file and an offset in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct UserAddress {
    module: Arc<str>,
    offset: u64,
}

#[derive(Debug, Default, PartialEq, Eq, Hash)]
struct RawStack {
    /// Indexes of kernel functions.
    kernel: Vec<usize>,
    user: Vec<UserAddress>,
}

/// Index of stacks that were lost or for which there was no room.
const UNKNOWN_STACK: u32 = 0;
/// Limits of what grows with a recording: 30 MB of whole stacks and their keys, 10 MB of short
/// stacks, 5 MB of mappings.
const MAX_STACKS: usize = 32_768;
const MAX_SHORT_STACKS: usize = 32_768;
/// Callers kept of a stack beyond `MAX_STACKS`, so that most such stacks are already known.
const MAX_CALLERS: usize = 8;
/// Number of the latest keys that are always kept. The probe sends a stack again if its key is not
/// among the last 16,384 keys used.
const MAX_KEYS: usize = 250_000;
const MAX_PROCESSES: usize = 512;

/// Minimum time between two reads of the mappings of a program, if all functions of a stack are in
/// known ones: to read them for each library would delay a program that loads many.
const MIN_REREAD_TIME: Duration = Duration::from_millis(100);

/// Executable mappings of a process.
#[derive(Debug)]
struct ProcessCode {
    /// Hash of the mappings, as in [`ProfileStack::code_mappings`].
    id: u64,
    maps: Vec<CodeMapping>,
    read: Instant,
}

impl ProcessCode {
    /// Returns whether they serve for a stack. Generated code may not change the hash.
    fn serves(&self, stack: &ProfileStack) -> bool {
        let is_known = |at: &u64| find(&self.maps, *at).is_some();
        if self.id == stack.code_mappings {
            return stack.user.first().is_none_or(is_known);
        }
        let is_same_program = self.id >> 32 == stack.code_mappings >> 32;
        is_same_program && self.read.elapsed() < MIN_REREAD_TIME && stack.user.iter().all(is_known)
    }
}

/// The stacks of a recording.
#[derive(Debug, Default)]
pub(crate) struct StackTable {
    kernel: KernelSymbols,
    maps: HashMap<u32, ProcessCode>,
    code: CodeFiles,
    /// Index of each stack by process and key: recently used keys, and older ones.
    places: HashMap<(u32, u64), u32>,
    old_places: HashMap<(u32, u64), u32>,
    /// Distinct stacks; the first is empty.
    stacks: IndexSet<RawStack>,
}

impl StackTable {
    pub(crate) fn new() -> Self {
        let stacks = [RawStack::default()].into();
        Self { kernel: KernelSymbols::read(), stacks, ..Self::default() }
    }

    fn kernel_functions(&self, place: u32) -> Vec<&str> {
        let kernel = self.stacks[place as usize].kernel.iter();
        kernel.map(|function| self.kernel.name(*function)).collect()
    }

    /// Adds a stack. Returns whether the mappings of its process had to be read.
    pub(crate) fn add(&mut self, stack: &ProfileStack) -> bool {
        let is_known = stack.code_mappings == 0
            || self.maps.get(&stack.pid).is_some_and(|code| code.serves(stack));
        if !is_known {
            self.read_maps(stack);
        }
        let mut user = stack.user.clone();
        let maps = self.maps.get(&stack.pid).map_or(&[][..], |code| &code.maps);
        self.code.insert_caller(&mut user, &stack.words, maps);
        let kernel = stack.kernel.iter().filter_map(|at| self.kernel.place(*at));
        let raw = RawStack {
            kernel: kernel.skip_while(|place| is_of_probe(self.kernel.name(*place))).collect(),
            user: user.iter().map(|at| user_address(maps, *at)).collect(),
        };
        let place = self.intern(raw);
        self.keep_key((stack.pid, stack.key), place);
        !is_known
    }

    /// Reads the mappings of a process. If it has exited, the known mappings remain.
    fn read_maps(&mut self, stack: &ProfileStack) {
        let text = std::fs::read_to_string(format!("/proc/{}/maps", stack.pid));
        let maps = parse_maps(&text.unwrap_or_default());
        if maps.is_empty() {
            return;
        }
        if self.maps.len() >= MAX_PROCESSES && !self.maps.contains_key(&stack.pid) {
            // Mappings of running processes are read again.
            self.maps.clear();
        }
        self.maps
            .insert(stack.pid, ProcessCode { id: stack.code_mappings, maps, read: Instant::now() });
    }

    fn keep_key(&mut self, key: (u32, u64), place: u32) {
        if self.places.len() >= MAX_KEYS {
            self.old_places = std::mem::take(&mut self.places);
        }
        self.places.insert(key, place);
    }

    /// Returns the index of a stack; stacks of the same program may share it.
    fn intern(&mut self, mut raw: RawStack) -> u32 {
        let is_full = self.stacks.len() >= MAX_STACKS;
        if is_full && !self.stacks.contains(&raw) {
            raw.user.truncate(MAX_CALLERS);
        }
        if self.stacks.len() >= MAX_STACKS + MAX_SHORT_STACKS && !self.stacks.contains(&raw) {
            return UNKNOWN_STACK;
        }
        self.stacks.insert_full(raw).0 as u32
    }

    /// Looks up the symbols of the used stacks; other stacks are empty.
    pub(crate) fn resolve(&self, used: &BTreeSet<u32>) -> Vec<StackTrace> {
        let symbolizer = symbolizer();
        let mut known: HashMap<UserAddress, Vec<Frame>> = HashMap::new();
        let mut resolve = |address: &UserAddress, is_return: bool| -> Vec<Frame> {
            let offset = address.offset.saturating_sub(u64::from(is_return));
            let key = UserAddress { offset, ..address.clone() };
            known.entry(key).or_insert_with(|| frames(&symbolizer, &address.module, offset)).clone()
        };
        let kernel_frame = |place: &usize| {
            let function = self.kernel.name(*place).to_owned();
            Frame { function, ..Frame::default() }
        };
        let mut trace = |(place, raw): (u32, &RawStack)| {
            if !used.contains(&place) {
                return StackTrace::default();
            }
            let user = raw.user.iter().enumerate();
            StackTrace {
                kernel: raw.kernel.iter().map(kernel_frame).collect(),
                user: user.flat_map(|(nth, address)| resolve(address, nth > 0)).collect(),
            }
        };
        (0..).zip(&self.stacks).map(&mut trace).collect()
    }
}

impl StackIndex for StackTable {
    fn place(&mut self, pid: u32, key: u64) -> u32 {
        let key = (pid, key);
        if let Some(place) = self.places.get(&key) {
            return *place;
        }
        let Some(place) = self.old_places.remove(&key) else { return UNKNOWN_STACK };
        self.keep_key(key, place);
        place
    }

    fn class(&self, place: u32, in_iowait: bool, reason: WaitReason) -> WaitClass {
        classify(&self.kernel_functions(place), in_iowait, reason)
    }

    fn reads_data(&self, place: u32) -> bool {
        reads_data(&self.kernel_functions(place))
    }
}

fn user_address(maps: &[CodeMapping], address: u64) -> UserAddress {
    match find(maps, address) {
        Some(map) => {
            let module = Arc::clone(&map.path);
            UserAddress { module, offset: address - map.start + map.offset }
        }
        None => UserAddress { module: Arc::default(), offset: address },
    }
}

/// Creates a symbolizer for functions, lines and inlined functions.
pub(crate) fn symbolizer() -> Symbolizer {
    Symbolizer::builder().enable_code_info(true).enable_inlined_fns(true).build()
}

/// Returns the function at an offset of a file, the innermost inlined function first.
pub(crate) fn frames(symbolizer: &Symbolizer, module: &str, offset: u64) -> Vec<Frame> {
    let base = module.rsplit('/').next().unwrap_or_default();
    let unknown = || {
        let function =
            if module.is_empty() { "[unknown]".to_owned() } else { format!("{base}+{offset:#x}") };
        vec![Frame { function, module: module.to_owned(), source: None }]
    };
    if !module.starts_with('/') || !Path::new(module).is_file() {
        return unknown();
    }
    // If debug information cannot be read, the symbol table is still used.
    let sources = [true, false].map(|debug_syms| {
        let mut elf = Elf::new(module);
        elf.debug_syms = debug_syms;
        Source::Elf(elf)
    });
    let mut found = sources.iter().filter_map(|source| {
        match symbolizer.symbolize_single(source, Input::FileOffset(offset)) {
            Ok(Symbolized::Sym(symbol)) => Some(symbol),
            _ => None,
        }
    });
    let Some(symbol) = found.next() else { return unknown() };
    let place = |info: &blazesym::symbolize::CodeInfo<'_>| {
        Some((info.to_path().display().to_string(), info.line?))
    };
    let frame = |function: &str, source| Frame {
        function: function.to_owned(),
        module: module.to_owned(),
        source,
    };
    let inlined = symbol.inlined.iter().rev();
    let mut frames: Vec<Frame> =
        inlined.map(|one| frame(&one.name, one.code_info.as_ref().and_then(place))).collect();
    frames.push(frame(&symbol.name, symbol.code_info.as_deref().and_then(place)));
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_is_not_part_of_a_stack() {
        let all = ["bpf_prog_0_thread_switches", "bpf_trace_run4", "__traceiter_sched_switch"];
        assert!(all.into_iter().all(is_of_probe));
        assert!(!is_of_probe("__schedule"));
    }

    fn stack_of(pid: u32, key: u64, user: Vec<u64>) -> ProfileStack {
        ProfileStack { pid, key, code_mappings: 1, kernel: Vec::new(), user, words: Vec::new() }
    }

    #[test]
    fn mappings_are_read_again_when_they_have_changed() {
        let (mut table, own) = (StackTable::new(), std::process::id());
        let here = a_key_in_use_outlives_many_others as fn() as usize as u64;
        let with = |code_mappings| ProfileStack { code_mappings, ..stack_of(own, 1, vec![here]) };
        let program = std::env::current_exe().unwrap();
        let module = |table: &mut StackTable, pid| {
            let place = table.place(pid, 1) as usize;
            Arc::clone(&table.stacks[place].user[0].module)
        };
        assert!(table.add(&with(1)));
        assert!(!table.add(&with(1)));
        let other = || parse_maps("0-7fffffffffff r-xp 0 00:00 0 /other");
        table.maps.get_mut(&own).unwrap().maps = other();
        assert!(!table.add(&with(1)) && !table.add(&with(0)));
        assert_eq!(&*module(&mut table, own), "/other");
        assert!(!table.add(&with(2)), "they were read just now");
        assert!(table.add(&with(1 << 32 | 2)), "another program");
        table.maps.get_mut(&own).unwrap().maps = other();
        table.maps.get_mut(&own).unwrap().read -= MIN_REREAD_TIME;
        assert!(table.add(&with(2)));
        assert_eq!(&*module(&mut table, own), program.to_str().unwrap());
        // A process that has exited keeps its mappings.
        let gone = u32::MAX;
        let read = Instant::now() - MIN_REREAD_TIME;
        table.maps.insert(gone, ProcessCode { id: 1, maps: other(), read });
        assert!(table.add(&ProfileStack { pid: gone, ..with(2) }));
        assert_eq!(&*module(&mut table, gone), "/other");
    }

    #[test]
    fn a_key_in_use_outlives_many_others() {
        let mut table = StackTable::default();
        table.stacks.insert(RawStack::default());
        table.add(&stack_of(1, 1, vec![7]));
        let place = table.place(1, 1);
        assert_ne!(place, UNKNOWN_STACK);
        for key in 2..3 * MAX_KEYS as u64 {
            table.keep_key((1, key), UNKNOWN_STACK);
            if key % 10_000 == 0 {
                assert_eq!(table.place(1, 1), place);
            }
        }
        assert!(table.places.len() + table.old_places.len() <= 2 * MAX_KEYS);
        assert_eq!(table.place(1, 2), UNKNOWN_STACK);
    }

    #[test]
    fn of_too_many_stacks_the_innermost_functions_are_kept() {
        let mut table = StackTable::default();
        let at = |offset| UserAddress { module: Arc::default(), offset };
        let raw = |outermost: u64| RawStack {
            kernel: Vec::new(),
            user: (0..MAX_CALLERS as u64).chain([outermost]).map(at).collect(),
        };
        let places: Vec<u32> =
            (0..MAX_STACKS as u64 + 2).map(|one| table.intern(raw(one))).collect();
        let [.., last, beyond, further] = places[..] else { unreachable!() };
        assert_ne!(last, beyond);
        assert_eq!(beyond, further);
        assert_eq!(table.stacks[beyond as usize].user.len(), MAX_CALLERS);
    }

    #[test]
    fn a_symbol_of_the_kernel_reaches_to_the_next() {
        let lines = ["ffffffff81000000 T first", "ffffffff81000040 t second [mod]", "0 T hidden"];
        let symbols = KernelSymbols(lines.iter().filter_map(|line| kernel_symbol(line)).collect());
        let name = |at| symbols.place(at).map(|place| symbols.name(place));
        assert_eq!(name(0xffff_ffff_8100_003f), Some("first"));
        assert_eq!(name(0xffff_ffff_8100_0040), Some("second"));
        assert_eq!(name(0xffff_ffff_80ff_ffff), None);
    }
}
