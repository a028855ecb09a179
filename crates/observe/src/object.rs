//! The compiled programs, and how they are loaded. Types of the loader are not public.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use aya::programs::ProgramError;
use aya::{Btf, BtfError, Ebpf, EbpfError, EbpfLoader, Endianness};
use aya_obj::btf::BtfKind;
use flate2::read::DeflateDecoder;

use crate::ObserveError;
use crate::kernel_types::Types;

/// Where the kernel provides its BTF.
const KERNEL_TYPES: &str = "/sys/kernel/btf/vmlinux";

/// A compiled object, deflated by build.rs; `None` if it was built without clang.
pub(crate) type Object = Option<&'static [u8]>;

#[cfg(bpf_object)]
macro_rules! object {
    ($name:literal) => {
        Some(include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.deflate")))
    };
}
#[cfg(not(bpf_object))]
macro_rules! object {
    ($name:literal) => {
        None
    };
}

pub(crate) const OPEN_FILES: Object = object!("open_files");
pub(crate) const EVENTS: Object = object!("events");
pub(crate) const PROFILE: Object = object!("profile");
pub(crate) const SAMPLES: Object = object!("samples");

/// Returns whether the programs are part of this binary: not if it was built without clang.
pub fn built_in() -> bool {
    OPEN_FILES.is_some()
}

/// The kernel's type information (BTF). It takes some milliseconds to read and megabytes of memory,
/// so a caller that loads several programs reads it once, and then drops it.
pub struct KernelTypes {
    /// The types that the programs read, with ids of their own.
    fields: Btf,
    whole: Vec<u8>,
    /// Created on first use.
    places: OnceCell<Btf>,
}

impl std::fmt::Debug for KernelTypes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KernelTypes").finish_non_exhaustive()
    }
}

impl KernelTypes {
    /// Reads the BTF of the running kernel.
    pub fn read() -> Result<Self, ObserveError> {
        // This is checked first, so that no user is asked for privileges that would not help.
        OPEN_FILES.ok_or(ObserveError::NotBuilt)?;
        if !sys::process::has_host_ids() {
            return Err(ObserveError::OwnProcessIds);
        }
        if !Path::new(KERNEL_TYPES).exists() {
            return Err(ObserveError::NoTypes);
        }
        let whole = fs::read(KERNEL_TYPES).map_err(|error| match error {
            error if denied(&error) => ObserveError::NotPermitted { source: error },
            error => refused("foreread", &error),
        })?;
        let reduced = reduced(&whole);
        let fields = Btf::parse(reduced.as_ref().unwrap_or(&whole), Endianness::default());
        let fields = fields.map_err(|error| refused("foreread", &error))?;
        Ok(Self { fields, whole, places: OnceCell::new() })
    }

    /// Returns the types whose fields the programs read.
    pub(crate) fn fields(&self) -> &Btf {
        &self.fields
    }

    /// Returns the functions and tracepoints that programs are attached to.
    pub(crate) fn places(&self) -> Result<&Btf, BtfError> {
        if let Some(places) = self.places.get() {
            return Ok(places);
        }
        let hollow = Types::parse(&self.whole).map(|types| types.without_members());
        let places = Btf::parse(hollow.as_ref().unwrap_or(&self.whole), Endianness::default())?;
        Ok(self.places.get_or_init(|| places))
    }

    /// Returns whether a structure of the kernel has a member of this name.
    pub(crate) fn has_member(&self, structure: &str, member: &str) -> bool {
        Types::parse(&self.whole).is_some_and(|types| types.has_member(structure, member))
    }

    /// Returns the id of a function.
    pub(crate) fn function(&self, name: &str) -> Result<u32, BtfError> {
        match Types::parse(&self.whole).and_then(|types| types.function(name)) {
            Some(number) => Ok(number),
            None => self.places()?.id_by_type_name_kind(name, BtfKind::Func),
        }
    }
}

/// Returns the kernel's types that the programs name; `None` if the format of the BTF is unknown.
fn reduced(whole: &[u8]) -> Option<Vec<u8>> {
    let objects = [OPEN_FILES, EVENTS, PROFILE, SAMPLES].into_iter().filter(Option::is_some);
    let own: Option<Vec<Vec<u8>>> = objects.map(own_types).collect();
    let own = own?;
    let own: Option<Vec<Types<'_>>> = own.iter().map(|bytes| Types::parse(bytes)).collect();
    let own = own?;
    let names: HashSet<&[u8]> = own.iter().flat_map(Types::names).collect();
    Some(Types::parse(whole)?.reduced_to(&names))
}

/// Returns the BTF of a compiled object.
fn own_types(object: Object) -> Option<Vec<u8>> {
    let object = inflated(object).ok()?;
    Some(aya_obj::Object::parse(&object).ok()?.btf?.to_bytes())
}

/// Returns a compiled object as clang wrote it.
pub(crate) fn inflated(object: Object) -> Result<Vec<u8>, ObserveError> {
    let mut packed = DeflateDecoder::new(object.ok_or(ObserveError::NotBuilt)?);
    let mut bytes = Vec::new();
    packed.read_to_end(&mut bytes).map_err(|error| refused("foreread", &error))?;
    Ok(bytes)
}

/// Parses the object, relocates it for the kernel, and creates its maps.
pub(crate) fn load(object: Object, types: &KernelTypes) -> Result<Ebpf, ObserveError> {
    let object = inflated(object)?;
    EbpfLoader::new().btf(Some(types.fields())).load(&object).map_err(|error| match error {
        EbpfError::MapError(error) => of_chain("foreread", &error),
        EbpfError::ProgramError(error) => of_program("foreread", &error),
        error => of_chain("foreread", &error),
    })
}

/// Converts an error of one program.
pub(crate) fn of_program(program: &'static str, error: &ProgramError) -> ObserveError {
    match error {
        ProgramError::LoadError { io_error, verifier_log } => {
            of_verifier(program, io_error, &verifier_log.to_string())
        }
        error => of_chain(program, error),
    }
}

/// Converts an error of loading a program.
pub(crate) fn of_verifier(program: &'static str, error: &io::Error, log: &str) -> ObserveError {
    // The verifier rejects with EACCES, too, but then there is a log.
    if denied(error) && log.trim().is_empty() {
        ObserveError::NotPermitted { source: again(error) }
    } else {
        ObserveError::Refused { program, problem: verdict(log, error) }
    }
}

/// Returns the verifier's reason for a rejection in one line: its log lists every instruction, then
/// the reason, then statistics of the verification.
fn verdict(log: &str, error: &io::Error) -> String {
    // The loader inserts this call where a program reads a field that the kernel does not have.
    const MISSING_FIELD: &str = "unknown#195896080";
    let figures = ["processed ", "verification time ", "stack depth "];
    let is_reason =
        |line: &&str| !line.is_empty() && figures.iter().all(|figure| !line.starts_with(figure));
    match log.lines().map(str::trim).rev().find(is_reason) {
        Some(line) if line.contains(MISSING_FIELD) => {
            "it reads a field that this kernel does not have".to_owned()
        }
        Some(line) => format!("{line} ({error})"),
        None => error.to_string(),
    }
}

/// Converts an error, of which a missing privilege may be any cause.
pub(crate) fn of_chain(
    program: &'static str,
    error: &(dyn std::error::Error + 'static),
) -> ObserveError {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(source) = error.downcast_ref::<io::Error>().filter(|error| denied(error)) {
            return ObserveError::NotPermitted { source: again(source) };
        }
        cause = error.source();
    }
    refused(program, error)
}

pub(crate) fn refused(program: &'static str, error: &dyn std::error::Error) -> ObserveError {
    let mut problem = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        problem.push_str(": ");
        problem.push_str(&error.to_string());
        cause = error.source();
    }
    ObserveError::Refused { program, problem }
}

/// Returns whether a privilege is missing, as the kernel reports it for BPF.
fn denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

fn again(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses the types of the running kernel.
    #[test]
    fn programs_are_fitted_to_the_reduced_types_as_to_all() {
        let Ok(whole) = fs::read(KERNEL_TYPES) else {
            println!("SKIP programs_are_fitted: this kernel does not describe its types");
            return;
        };
        let fitted = |types: &[u8], object: &[u8]| {
            let types = Btf::parse(types, Endianness::default()).expect("types");
            let mut object = aya_obj::Object::parse(object).expect("an object");
            let outcome = object.relocate_btf(&types).map_err(|error| error.to_string());
            let functions = object.functions.values();
            let code: Vec<_> = functions.map(|one| format!("{:?}", one.instructions)).collect();
            (outcome, code)
        };
        let reduced = reduced(&whole).expect("a form that is known");
        assert!(reduced.len() < whole.len());
        for object in [OPEN_FILES, EVENTS, PROFILE, SAMPLES].into_iter().filter(Option::is_some) {
            let object = inflated(object).expect("an object");
            assert_eq!(fitted(&reduced, &object), fitted(&whole, &object));
        }
    }

    #[test]
    fn the_verifiers_log_becomes_one_line() {
        let error = || io::Error::from_raw_os_error(libc::EINVAL);
        let log = "0: (bf) r6 = r1\n89: (85) call unknown#195896080\n\
                   invalid func unknown#195896080\nverification time 22253 usec\n\
                   stack depth 184\nprocessed 84 insns (limit 1000000)\n\n";
        assert_eq!(verdict(log, &error()), "it reads a field that this kernel does not have");
        let log = "0: (79) r3 = *(u64 *)(r1 +0)\nR3 invalid mem access 'inv'\nprocessed 1 insns\n";
        let expected = "R3 invalid mem access 'inv' (Invalid argument (os error 22))";
        assert_eq!(verdict(log, &error()), expected);
        assert_eq!(verdict("", &error()), "Invalid argument (os error 22)");
    }
}
