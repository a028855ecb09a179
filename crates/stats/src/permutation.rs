//! Permutation test for differences between groups.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

/// Rearrangements tried. The smallest p is 1/1000: (0 + 1) / (999 + 1).
const REARRANGEMENT_COUNT: usize = 999;

/// A value with its group.
pub type Labelled = (usize, f64);

/// Returns the probability that groups differ as much as these by chance alone.
///
/// If groups are equal, the values of a block, which share all other influences, could have
/// occurred in any order. So the spread of the groups' means is compared with the spread after
/// shuffling the labels within each block (Fisher's randomisation test for complete blocks). One
/// test covers all groups, because comparing each group with the luckiest would find differences
/// where none exist. `None` if fewer than 5000 arrangements exist, which allow no small p.
pub fn groups_differ(blocks: &[Vec<Labelled>], seed: u64) -> Option<f64> {
    const ARRANGEMENTS_LEAST: f64 = 5000.0;
    let useful: Vec<Vec<Labelled>> =
        blocks.iter().filter(|b| b.len() > 1).map(|b| centred(b)).collect();
    // The first block may stay unchanged: only the other blocks move relative to it.
    let arrangements: f64 = useful
        .iter()
        .skip(1)
        .map(|block| (1..=block.len()).map(|n| n as f64).product::<f64>())
        .product();
    if arrangements < ARRANGEMENTS_LEAST {
        return None;
    }
    let groups = useful.iter().flatten().map(|(group, _)| group + 1).max().unwrap_or(0);
    let seen = spread(&useful, groups);
    let mut random = Pcg64::seed_from_u64(seed);
    let mut shuffled = useful;
    let mut as_much = 0;
    for _ in 0..REARRANGEMENT_COUNT {
        for block in &mut shuffled {
            let mut labels: Vec<usize> = block.iter().map(|(group, _)| *group).collect();
            labels.shuffle(&mut random);
            block.iter_mut().zip(labels).for_each(|(value, label)| value.0 = label);
        }
        // Sums in another order differ in their last bits.
        if spread(&shuffled, groups) >= seen * (1.0 - 1e-9) {
            as_much += 1;
        }
    }
    Some(f64::from(as_much + 1) / (REARRANGEMENT_COUNT + 1) as f64)
}

fn centred(block: &[Labelled]) -> Vec<Labelled> {
    let mean = block.iter().map(|(_, value)| value).sum::<f64>() / block.len() as f64;
    block.iter().map(|(group, value)| (*group, value - mean)).collect()
}

fn spread(blocks: &[Vec<Labelled>], groups: usize) -> f64 {
    let mut sums = vec![(0.0, 0.0); groups];
    for (group, value) in blocks.iter().flatten() {
        sums[*group].0 += value;
        sums[*group].1 += 1.0;
    }
    sums.iter().filter(|(_, count)| *count > 0.0).map(|(sum, count)| sum * sum / count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    fn block(values: &[f64]) -> Vec<Labelled> {
        values.iter().copied().enumerate().collect()
    }

    #[test]
    fn groups_that_differ_in_every_block_differ() {
        let shape = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let blocks: Vec<_> = [0.0, 10.0, -4.0]
            .iter()
            .map(|shift| block(&shape.map(|value| value + shift)))
            .collect();
        assert!(groups_differ(&blocks, 1).unwrap() <= 0.002);
    }

    #[test]
    fn chance_alone_is_called_a_difference_as_rarely_as_it_should() {
        let mut random = Pcg64::seed_from_u64(3);
        let found = (0..400)
            .filter(|seed| {
                let blocks: Vec<_> = (0..3)
                    .map(|_| block(&(0..9).map(|_| random.random::<f64>()).collect::<Vec<_>>()))
                    .collect();
                groups_differ(&blocks, *seed).unwrap() <= 0.05
            })
            .count();
        assert!((8..=34).contains(&found), "{found} of 400 at p = 0.05, 20 expected");
    }

    #[test]
    fn too_few_arrangements_say_nothing() {
        let pair = block(&[1.0, 9.0]);
        assert_eq!(groups_differ(&[pair.clone(), pair.clone(), pair], 1), None);
        assert_eq!(groups_differ(&[block(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])], 1), None);
        assert_eq!(groups_differ(&[], 1), None);
    }

    #[test]
    fn blocks_need_not_be_complete() {
        let full = block(&[1.0, 1.1, 5.0, 5.1, 5.2, 4.9]);
        let part = vec![(2, 5.0), (0, 1.0), (4, 5.3), (5, 5.0)];
        assert!(groups_differ(&[full.clone(), full, part], 1).unwrap() < 0.02);
    }
}
