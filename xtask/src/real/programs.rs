//! The programs, from a table with a line for each.

/// A program, its data, and how much it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// Also the name of its work in `work.py`.
    pub name: &'static str,
    /// The data set: the function of this name in `data.py`.
    pub data: &'static str,
    /// Operations on a disk that serves some hundred reads per second; 0 where the data set
    /// determines the amount of work.
    pub operations: u64,
    pub description: &'static str,
}

/// Which programs the constants of `auto` may be chosen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    Tuned,
    Other,
}

/// All programs of `programs.txt`.
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
    /// The half by a hash (FNV-1a) of the name, so that nobody chooses it.
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

/// How many times the operations of a hard disk fill about as much time on a faster device.
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
