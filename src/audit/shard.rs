//! Shards: which part of a plan a worker begins with.

use std::ops::Range;
use std::str::FromStr;

use model::Environment;

use super::AuditChunk;

/// Part `index` of `count` parts of a plan, from 0. A worker begins with its part, and helps with the others then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Position, from 0.
    pub index: usize,
    /// Number of shards.
    pub count: usize,
}

impl Shard {
    /// The whole plan.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// The shard of this process, as the scheduler that started it says: a Slurm array, a Kubernetes Indexed Job, or a CI
    /// service with parallel jobs. `count` is the number of shards, which Kubernetes does not say. The whole plan
    /// where nothing is set.
    ///
    /// # Errors
    /// A variable has no number, or the index of an Indexed Job comes without a count.
    pub fn of_environment(environment: &Environment, count: Option<usize>) -> Result<Self, String> {
        let number = |name: &str| -> Result<Option<usize>, String> {
            let Some(text) = environment.get(name) else { return Ok(None) };
            text.parse().map(Some).map_err(|_number| format!("{name}={text} is not a number"))
        };
        if let Some(task) = number("SLURM_ARRAY_TASK_ID")? {
            // Arrays begin at any number, and may have gaps: a task outside of the count helps with any part.
            let first = number("SLURM_ARRAY_TASK_MIN")?.unwrap_or(0);
            let count = count.or(number("SLURM_ARRAY_TASK_COUNT")?).unwrap_or(1).max(1);
            return Ok(Self { index: task.saturating_sub(first) % count, count });
        }
        if let Some(index) = number("JOB_COMPLETION_INDEX")? {
            let why = "JOB_COMPLETION_INDEX is set, but not the number of completions: add --shards N";
            let count = count.ok_or_else(|| why.to_owned())?.max(1);
            return Ok(Self { index: index % count, count });
        }
        if let (Some(index), Some(total)) = (number("CI_NODE_INDEX")?, number("CI_NODE_TOTAL")?) {
            // GitLab counts from 1.
            return Ok(Self { index: index.saturating_sub(1) % total.max(1), count: total.max(1) });
        }
        Ok(Self::WHOLE)
    }

    /// This shard's chunks: a range of about the same cost as those of the other shards.
    pub(super) fn of(self, chunks: &[AuditChunk]) -> Range<usize> {
        let total: u128 = chunks.iter().map(weight).sum();
        let boundary = |part: usize| {
            let wanted = total * part as u128 / self.count.max(1) as u128;
            let mut sum = 0;
            chunks
                .iter()
                .position(|chunk| {
                    let is_there = sum >= wanted;
                    sum += weight(chunk);
                    is_there
                })
                .unwrap_or(chunks.len())
        };
        let end = if self.index + 1 >= self.count { chunks.len() } else { boundary(self.index + 1) };
        boundary(self.index).min(end)..end
    }
}

/// The cost of a chunk: its bytes, and for each image as much as is read in the time that judging takes.
fn weight(chunk: &AuditChunk) -> u128 {
    u128::from(chunk.bytes) + chunk.items as u128 * (1 << 20)
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        match parsed {
            Some((index, count)) if index < count => Ok(Self { index, count }),
            _ => Err(format!("'{text}' is not a shard: expected K/N with K from 0 to N-1, such as 0/8")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)], count: Option<usize>) -> Result<(usize, usize), String> {
        let environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let shard = Shard::of_environment(&environment, count)?;
        Ok((shard.index, shard.count))
    }

    #[test]
    fn shards_of_schedulers() {
        let slurm = [("SLURM_ARRAY_TASK_ID", "5"), ("SLURM_ARRAY_TASK_MIN", "1"), ("SLURM_ARRAY_TASK_COUNT", "8")];
        assert_eq!(of(&slurm, None), Ok((4, 8)));
        assert_eq!(of(&[("JOB_COMPLETION_INDEX", "3")], Some(4)), Ok((3, 4)));
        assert!(of(&[("JOB_COMPLETION_INDEX", "3")], None).unwrap_err().contains("--shards N"));
        assert_eq!(of(&[("CI_NODE_INDEX", "1"), ("CI_NODE_TOTAL", "3")], None), Ok((0, 3)));
        assert_eq!(of(&[], None), Ok((0, 1)));
        assert!(of(&[("SLURM_ARRAY_TASK_ID", "x")], None).unwrap_err().contains("SLURM_ARRAY_TASK_ID=x"));
    }

    #[test]
    fn shards_cover_every_chunk_once() {
        let chunks: Vec<_> = (0..37).map(|n| AuditChunk { items: 1 + n % 5, bytes: (n as u64 % 7) << 24 }).collect();
        for count in [1, 2, 3, 8, 50] {
            let ranges: Vec<_> = (0..count).map(|index| Shard { index, count }.of(&chunks)).collect();
            let covered: Vec<_> = ranges.into_iter().flatten().collect();
            assert_eq!(covered, (0..chunks.len()).collect::<Vec<_>>(), "{count}");
        }
    }

    #[test]
    fn shards_are_parsed() {
        assert_eq!("2/8".parse(), Ok(Shard { index: 2, count: 8 }));
        for text in ["8/8", "1", "a/2", "-1/3", ""] {
            assert!(text.parse::<Shard>().unwrap_err().contains("K/N"));
        }
    }
}
