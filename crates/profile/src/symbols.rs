//! Functions and lines of stacks. Addresses are turned into offsets in files while their process
//! lives; symbols are looked up at the end, so that nothing of it delays the program.

use std::collections::HashMap;
use std::path::Path;

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use observe::{ProfileStack, WaitReason};

use crate::callers::CodeFiles;
use crate::classify::classify;
use crate::collect::StackIndex;
use crate::maps::{CodeMapping, find, parse_maps};
use crate::recording::{Frame, StackTrace, WaitClass};

/// The kernel's functions in the order of their addresses.
#[derive(Debug, Default)]
struct KernelSymbols(Vec<(u64, String)>);

impl KernelSymbols {
    fn read() -> Self {
        let text = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let mut symbols: Vec<(u64, String)> = text.lines().filter_map(kernel_symbol).collect();
        symbols.sort_unstable();
        Self(symbols)
    }

    fn name(&self, address: u64) -> Option<&str> {
        let after = self.0.partition_point(|(start, _)| *start <= address);
        self.0.get(after.checked_sub(1)?).map(|(_, name)| name.as_str())
    }
}

fn kernel_symbol(line: &str) -> Option<(u64, String)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok().filter(|it| *it != 0)?;
    let kind = words.next()?;
    let is_code = matches!(kind, "t" | "T" | "w" | "W");
    is_code.then(|| (address, words.next().unwrap_or_default().to_owned()))
}

/// Whether a function belongs to the probe that took the stack.
fn is_of_probe(function: &str) -> bool {
    ["bpf_", "__bpf_", "__traceiter_"].iter().any(|start| function.starts_with(start))
}

/// An address of a process: its file and the offset in it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct UserAddress {
    module: String,
    offset: u64,
}

#[derive(Debug, Default)]
struct RawStack {
    kernel: Vec<String>,
    user: Vec<UserAddress>,
}

/// The stacks of a recording.
#[derive(Debug, Default)]
pub(crate) struct StackTable {
    kernel: KernelSymbols,
    maps: HashMap<u32, Vec<CodeMapping>>,
    code: CodeFiles,
    places: HashMap<(u32, u64), u32>,
    stacks: Vec<RawStack>,
}

impl StackTable {
    pub(crate) fn new() -> Self {
        Self { kernel: KernelSymbols::read(), ..Self::default() }
    }

    /// Takes a stack in, reading where the code of its process comes from.
    pub(crate) fn add(&mut self, stack: &ProfileStack) {
        let place = self.place(stack.pid, stack.key) as usize;
        let mut user = stack.user.clone();
        let known = self.maps.get(&stack.pid);
        let all = known.is_some_and(|maps| user.iter().all(|at| find(maps, *at).is_some()));
        if !all {
            let text = std::fs::read_to_string(format!("/proc/{}/maps", stack.pid));
            if let Some(maps) = text.ok().map(|text| parse_maps(&text)).filter(|it| !it.is_empty())
            {
                self.maps.insert(stack.pid, maps);
            }
        }
        let none = Vec::new();
        let maps = self.maps.get(&stack.pid).unwrap_or(&none);
        self.code.insert_caller(&mut user, &stack.words, maps);
        let kernel = stack.kernel.iter().filter_map(|at| self.kernel.name(*at));
        let raw = RawStack {
            kernel: kernel.skip_while(|name| is_of_probe(name)).map(str::to_owned).collect(),
            user: user.iter().map(|at| user_address(maps, *at)).collect(),
        };
        self.stacks[place] = raw;
    }

    /// Looks all symbols up.
    pub(crate) fn resolve(&self) -> Vec<StackTrace> {
        let symbolizer = symbolizer();
        let mut known: HashMap<(String, u64), Vec<Frame>> = HashMap::new();
        let mut resolve = |address: &UserAddress, is_return: bool| -> Vec<Frame> {
            let offset = address.offset.saturating_sub(u64::from(is_return));
            let key = (address.module.clone(), offset);
            known.entry(key).or_insert_with(|| frames(&symbolizer, &address.module, offset)).clone()
        };
        let trace = |raw: &RawStack| StackTrace {
            kernel: raw
                .kernel
                .iter()
                .map(|name| Frame { function: name.clone(), ..Frame::default() })
                .collect(),
            user: (raw.user.iter().enumerate())
                .flat_map(|(nth, address)| resolve(address, nth > 0))
                .collect(),
        };
        self.stacks.iter().map(trace).collect()
    }
}

impl StackIndex for StackTable {
    fn place(&mut self, pid: u32, key: u64) -> u32 {
        let stacks = &mut self.stacks;
        *self.places.entry((pid, key)).or_insert_with(|| {
            stacks.push(RawStack::default());
            stacks.len() as u32 - 1
        })
    }

    fn class(&self, place: u32, in_iowait: bool, reason: WaitReason) -> WaitClass {
        let kernel = &self.stacks[place as usize].kernel;
        let kernel: Vec<&str> = kernel.iter().map(String::as_str).collect();
        classify(&kernel, in_iowait, reason)
    }
}

fn user_address(maps: &[CodeMapping], address: u64) -> UserAddress {
    match find(maps, address) {
        Some(map) => {
            UserAddress { module: map.path.clone(), offset: address - map.start + map.offset }
        }
        None => UserAddress { module: String::new(), offset: address },
    }
}

/// With lines and inlined functions.
pub(crate) fn symbolizer() -> Symbolizer {
    Symbolizer::builder().enable_code_info(true).enable_inlined_fns(true).build()
}

/// The function at an offset of a file, the innermost inlined one first.
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
    // Debug information that cannot be read must not hide the table of symbols.
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

    #[test]
    fn a_symbol_of_the_kernel_reaches_to_the_next() {
        let lines = ["ffffffff81000000 T first", "ffffffff81000040 t second [mod]", "0 T hidden"];
        let symbols = KernelSymbols(lines.iter().filter_map(|line| kernel_symbol(line)).collect());
        assert_eq!(symbols.name(0xffff_ffff_8100_003f), Some("first"));
        assert_eq!(symbols.name(0xffff_ffff_8100_0040), Some("second"));
        assert_eq!(symbols.name(0xffff_ffff_80ff_ffff), None);
    }
}
