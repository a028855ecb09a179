//! `--workload dd:…`: streaming reads as in dd, at the start, middle and end.

use units::Bytes;
use workload::{Pattern, Workload, Zone};

use crate::exit::{Usage, bail_usage};

/// The default request size of dd.
const DEFAULT_BLOCK_BYTES: Bytes = Bytes::from_kib(64);

/// Returns the workloads of `dd` without options: one for each zone.
pub fn plain() -> anyhow::Result<Vec<Workload>> {
    workloads_of(DEFAULT_BLOCK_BYTES, &Zone::ALL)
}

/// Returns the workloads of `bs=SIZE[,at=beginning|middle|end]`: one for each zone.
pub fn workloads(words: &str) -> anyhow::Result<Vec<Workload>> {
    let (mut block, mut zones) = (DEFAULT_BLOCK_BYTES, Zone::ALL.to_vec());
    for word in words.split(',') {
        if word.is_empty() {
            bail_usage!(
                "dd: an option is missing after the colon or a comma: write dd, or \
                 dd:bs=SIZE[,at=beginning|middle|end]"
            );
        }
        match word.split_once('=') {
            Some(("bs" | "ibs", text)) => block = size(text)?,
            Some(("at", text)) => {
                let zone = Zone::ALL.into_iter().find(|zone| zone.name() == text);
                let wrong = || Usage(format!("dd:{word}: must be beginning, middle or end"));
                zones = vec![zone.ok_or_else(wrong)?];
            }
            // Nothing is written, so write options have no effect.
            Some(("obs" | "of", _)) => {}
            Some(("if", _)) => {
                bail_usage!("dd:{word}: the input file is the target of the study");
            }
            _ => {
                bail_usage!(
                    "dd:{word}: supported are bs=SIZE (or ibs=) and at=beginning, middle or end; \
                     --duration sets the length"
                );
            }
        }
    }
    workloads_of(block, &zones)
}

fn workloads_of(block: Bytes, zones: &[Zone]) -> anyhow::Result<Vec<Workload>> {
    let workload = |zone: Zone| Workload {
        zone: Some(zone),
        ..Workload::new(format!("dd-{}", zone.name()), Pattern::Sequential, block)
    };
    let workloads: Vec<Workload> = zones.iter().copied().map(workload).collect();
    workloads.iter().try_for_each(Workload::validate)?;
    Ok(workloads)
}

/// Parses a size as dd does: `c` 1, `w` 2, `b` 512, `k` and `K` 1024, `kB` 1000, `M` 1024², `MB`
/// 1000², and so on; `x` multiplies.
fn size(text: &str) -> anyhow::Result<Bytes> {
    let wrong = || Usage(format!("dd:bs={text}: must be a size in dd's syntax, as in 64k or 24M"));
    let mut product = 1u64;
    for part in text.split('x') {
        let length = part.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, suffix) = part.split_at(length);
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        let factor = factor(suffix).ok_or_else(wrong)?;
        product = number
            .checked_mul(factor)
            .and_then(|part| product.checked_mul(part))
            .ok_or_else(wrong)?;
    }
    Ok(Bytes::new(product))
}

fn factor(suffix: &str) -> Option<u64> {
    match suffix {
        "" | "c" => return Some(1),
        "w" => return Some(2),
        "b" => return Some(512),
        _ => {}
    }
    let power = "kmgtp".find(suffix.chars().next()?.to_ascii_lowercase())? as u32 + 1;
    match &suffix[1..] {
        "" | "iB" => 1024u64.checked_pow(power),
        "B" => 1000u64.checked_pow(power),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_dd() {
        let bytes = |text: &str| size(text).ok().map(Bytes::get);
        assert_eq!(bytes("24M"), Some(24 << 20));
        assert_eq!(bytes("64k"), Some(65_536));
        assert_eq!(bytes("64kB"), Some(64_000));
        assert_eq!(bytes("2x512"), Some(1024));
        assert_eq!(bytes("8b"), Some(4096));
        for wrong in ["", "k", "4q", "4kb", "99999999999999999999", "x", "-1"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn there_is_a_workload_for_each_zone() {
        let names = |words: &str| -> Vec<String> {
            workloads(words).unwrap().into_iter().map(|workload| workload.name).collect()
        };
        assert_eq!(names("bs=64k"), ["dd-beginning", "dd-middle", "dd-end"]);
        assert_eq!(names("ibs=24M,obs=64K,at=end"), ["dd-end"]);
        assert_eq!(workloads("ibs=24M").unwrap()[0].block, Bytes::from_mib(24));
        assert_eq!(plain().unwrap().len(), 3);
        for wrong in
            ["", ",", "bs=64k,", "bs=0", "bs=1T", "at=start", "if=/dev/sda", "count=5", "skip=1"]
        {
            assert!(workloads(wrong).is_err(), "{wrong}");
        }
    }
}
