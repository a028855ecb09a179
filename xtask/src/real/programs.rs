//! The programs, from a table with one line each.

/// A program, its data, and its amount of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// Name; also that of its work in `work.py`.
    pub name: &'static str,
    /// Data set: the function of this name in `data.py`.
    pub data: &'static str,
    /// Number of operations on a disk with a few hundred reads/s; 0 if the data set determines the
    /// amount of work.
    pub operations: u64,
    pub description: &'static str,
}

/// Whether the constants of `auto` may be tuned with a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    Tuned,
    Other,
}

/// Returns all programs of `programs.txt`.
pub fn programs() -> impl Iterator<Item = Program> {
    include_str!("programs.txt").lines().filter_map(|line| {
        let mut fields = line.split('|').map(str::trim);
        let (name, data) = (fields.next()?, fields.next()?);
        // The heading has no number.
        let operations = fields.next()?.parse().ok()?;
        Some(Program { name, data, operations, description: fields.next()? })
    })
}

impl Program {
    /// Returns the half, from a hash (FNV-1a) of the name, so that it is not chosen.
    pub fn half(&self) -> Half {
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = self.name.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
        if (hash >> 32) & 1 == 0 { Half::Tuned } else { Half::Other }
    }
}

impl Half {
    pub const BOTH: [Self; 2] = [Self::Tuned, Self::Other];

    pub fn name(self) -> &'static str {
        match self {
            Self::Tuned => "tuned half",
            Self::Other => "other half",
        }
    }
}

/// Returns the factor by which a faster device needs more operations to run about as long.
pub fn operations_factor(disk: &str) -> u64 {
    match disk {
        disk if disk.starts_with("cloud-ssd") => 5,
        disk if disk.starts_with("ssd") || disk.starts_with("nvme") => 20,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_its_work_and_its_data_in_the_scripts() {
        let (data, work) = (include_str!("data.py"), include_str!("work.py"));
        for program in programs() {
            assert!(data.contains(&format!("\ndef {}(", program.data)), "{}", program.name);
            let function = format!("\ndef {}(", program.name.replace('-', "_"));
            let short = program.name.strip_prefix("rocksdb-").unwrap_or(program.name);
            let line = format!("\n    \"{short}\": ");
            assert!(work.contains(&function) || work.contains(&line), "{}", program.name);
        }
    }

    #[test]
    fn the_halves_are_of_about_the_same_size() {
        let tuned = programs().filter(|program| program.half() == Half::Tuned).count();
        let all = programs().count();
        assert_eq!(all, include_str!("programs.txt").lines().count() - 1);
        assert!((all / 3..=all * 2 / 3).contains(&tuned), "{tuned} of {all}");
    }
}
