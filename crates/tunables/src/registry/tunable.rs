//! A tunable: its names, files and the form of its values.

use std::fmt;
use std::path::PathBuf;

use host::{DevNo, Root};
use units::Bytes;

use super::declared_form::DeclaredForm;
use crate::{TunableScope, Value};

/// Prefix of the record names of sysctls without a table of their own.
pub(super) const SYSCTL_PREFIX: &str = "sysctl.";

/// The type of a tunable's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueForm {
    /// A count, share or switch without a unit; the bounds are inclusive.
    Count { least: i64, most: i64 },
    /// An amount of data; the file has it in units of `unit` bytes.
    Amount { unit: u64, least: Bytes, most: Bytes },
    /// A read-ahead window; the file has it in KiB.
    Window,
    /// A data rate; the file has it in KiB per second.
    Rate,
    /// A data rate of one array; `system` means that the array follows the machine's rate.
    ArrayRate,
    /// A time; the file has it in units of `unit` nanoseconds.
    Span { unit: u64 },
    /// One of the words that the file lists, with the current one in brackets.
    Choice,
    /// Any text that the kernel accepts.
    Text,
    /// A word within the limits that a user declared.
    Declared(&'static DeclaredForm),
}

/// A valid value, with notes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidatedValue {
    /// The value as the kernel rounds it.
    pub value: Value,
    /// Notes for the user: rounding, or an unexpected effect.
    pub notes: Vec<String>,
}

/// Where the files of a tunable are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileScope {
    /// `read_ahead_kb` of the effective bdi.
    Bdi,
    /// `read_ahead_kb` of the bdis below the effective one.
    MemberBdi,
    /// `queue/…` of each lowest device, which have requests and a scheduler of their own.
    Queue(&'static str),
    /// `device/…` of each lowest device: the driver's attributes.
    Driver(&'static str),
    /// `md/…` of each array in the stack.
    Array(&'static str),
    /// One file for the machine.
    Machine(&'static str),
    /// A path that a user declared, with placeholders.
    Declared(&'static str),
    /// No file: the tunable belongs to this other system.
    OtherSystem(&'static str),
}

/// The effect of writing one tunable on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideEffect {
    /// The kernel may change the other tunable's value, so foreread writes the old value again.
    Recomputed(&'static str),
    /// The kernel clears the other tunable, which must stay so: both set the same thing in
    /// different ways. Undoing the first restores it.
    Cleared(&'static str),
}

impl SideEffect {
    pub fn name(self) -> &'static str {
        match self {
            Self::Recomputed(name) | Self::Cleared(name) => name,
        }
    }
}

/// A setting of the kernel: its names, unit, files and values. Reading, writing and undoing are the
/// same for all tunables ([`crate::read`], [`crate::BdiLease`]).
pub struct Tunable {
    pub(super) name: &'static str,
    pub(super) aliases: &'static [&'static str],
    /// The name in JSON; empty if it is the same as `name`.
    pub(super) json_key: &'static str,
    /// Less than that of any tunable that the kernel recomputes with it; read-ahead has 200.
    pub(super) write_rank: u8,
    pub(super) file_scope: FileScope,
    pub(super) form: ValueForm,
    pub(super) side_effects: &'static [SideEffect],
    /// True if 0 only means that another tunable applies; 0 is then never written.
    pub(super) defers_at_zero: bool,
    pub(super) default_words: Option<&'static str>,
}

impl Tunable {
    /// The values that most tunables share.
    pub(super) const PLAIN: Self = Self {
        name: "",
        aliases: &[],
        json_key: "",
        write_rank: 100,
        file_scope: FileScope::Machine(""),
        form: ValueForm::Text,
        side_effects: &[],
        defers_at_zero: false,
        default_words: None,
    };

    /// Returns the name on the command line, as in `read_ahead`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the name in JSON, with the unit, as in `read_ahead_kib`.
    pub fn json_key(&self) -> &'static str {
        if self.json_key.is_empty() { self.name } else { self.json_key }
    }

    /// Returns the rank among several writes. Later writes overwrite side effects of earlier ones:
    /// a write to `max_sectors_kb` makes the kernel recompute read-ahead.
    pub fn write_rank(&self) -> u8 {
        self.write_rank
    }

    pub fn side_effects(&self) -> &'static [SideEffect] {
        self.side_effects
    }

    /// Returns the system's default in words, if known.
    pub fn default_words(&self) -> Option<&'static str> {
        self.default_words
    }

    /// Returns all names, the main one first.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        [self.name, self.json_key()].into_iter().chain(self.aliases.iter().copied())
    }

    /// Returns the name for sysctl(8); `None` if the tunable is not a sysctl.
    pub fn sysctl(&self) -> Option<&'static str> {
        match self.name.strip_prefix(SYSCTL_PREFIX) {
            Some(bare) => Some(bare),
            None => self.names().find(|name| name.contains('.') && !name.contains('/')),
        }
    }

    /// Returns the name of the operating system; `None` for Linux.
    pub fn other_os(&self) -> Option<&'static str> {
        match self.file_scope {
            FileScope::OtherSystem(system) => Some(system),
            _ => None,
        }
    }

    /// Returns whether the tunable applies to the whole machine, whatever the target.
    pub fn is_of_machine(&self) -> bool {
        matches!(self.file_scope, FileScope::Machine(_) | FileScope::OtherSystem(_))
    }

    /// Returns the kind of storage that has the tunable; `None` if every kind has it.
    pub fn needs(&self) -> Option<&'static str> {
        match self.file_scope {
            FileScope::Array(_) => Some("an md array"),
            FileScope::MemberBdi => Some("an array, volume or multipath device with members"),
            FileScope::Queue(_) | FileScope::Driver(_) => Some("a disk with this attribute"),
            _ => None,
        }
    }

    /// Returns whether the value only means that another tunable applies; it is then never written.
    pub fn defers_to_other(&self, value: &Value) -> bool {
        let is_zero = match value.bytes() {
            Some(bytes) => bytes.is_zero(),
            None => matches!(value, Value::Number(0)),
        };
        self.defers_at_zero && is_zero
    }

    /// Returns the possible files in `/sys` or `/proc`: one, or one for each device of a stack.
    /// They need not exist. Empty for tunables of another system.
    pub fn candidates(&self, site: &TunableScope) -> Vec<PathBuf> {
        let each = |devices: Vec<DevNo>, pattern: &str, mark: &str| -> Vec<PathBuf> {
            devices.iter().map(|device| pattern.replace(mark, &device.to_string()).into()).collect()
        };
        let block = |devices, rest: &str| each(devices, &format!("/sys/dev/block/D/{rest}"), "D");
        match self.file_scope {
            FileScope::Bdi => vec![site.bdi.dir().join("read_ahead_kb")],
            FileScope::MemberBdi => {
                let mut below = site.all_layers();
                below.retain(|device| device.to_string() != site.bdi.as_str());
                each(below, "/sys/class/bdi/D/read_ahead_kb", "D")
            }
            FileScope::Queue(file) => block(site.lowest_devices(), &format!("queue/{file}")),
            FileScope::Driver(file) => block(site.lowest_devices(), &format!("device/{file}")),
            FileScope::Array(file) => block(site.all_layers(), &format!("md/{file}")),
            FileScope::Machine(file) => vec![file.into()],
            FileScope::Declared(pattern) => {
                let pattern = pattern.replace("{bdi}", site.bdi.as_str());
                if pattern.contains("{device}") {
                    each(site.lowest_devices(), &pattern, "{device}")
                } else if pattern.contains("{md}") {
                    each(site.all_layers(), &pattern, "{md}")
                } else {
                    vec![pattern.into()]
                }
            }
            FileScope::OtherSystem(_) => Vec::new(),
        }
    }

    /// Returns the first of the possible files, for errors and for tunables with exactly one file.
    pub fn file(&self, site: &TunableScope) -> PathBuf {
        self.candidates(site).into_iter().next().unwrap_or_else(|| PathBuf::from(self.name))
    }

    /// Returns the existing files. Their values are usually equal; each file gets its own back.
    pub fn files(&self, root: &Root, site: &TunableScope) -> Vec<PathBuf> {
        let mut files = self.candidates(site);
        files.retain(|file| root.exists(file));
        files
    }
}

impl fmt::Debug for Tunable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
