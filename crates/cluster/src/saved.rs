//! The record of a run: a line with what was asked, each line of each node's recording, a line with the end of each node, and a
//! line with the tests between nodes.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::between::{BetweenNodes, Network};
use super::run::{ClusterRun, Fate, NodeRun};
use super::{ClusterError, node_names};

/// Version of the record.
const VERSION: u64 = 1;

/// A line of a record.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum SavedLine {
    /// The first line.
    Asked {
        ncclcheck_cluster: u64,
        steps: Vec<String>,
        nodes: Vec<String>,
        #[serde(default)]
        network: Network,
    },
    /// A line of a node's recording.
    Line { node: String, line: String },
    /// How a node ended.
    End {
        node: String,
        #[serde(flatten)]
        fate: Fate,
    },
    /// What the nodes did with each other.
    Between { between: BetweenNodes },
}

impl ClusterRun {
    /// Writes the record.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut put = |line: &SavedLine| {
            serde_json::to_writer(&mut *out, line)?;
            out.write_all(b"\n")
        };
        let nodes = self.nodes.iter().map(|node| node.name.clone()).collect();
        let network = self.network.clone();
        put(&SavedLine::Asked { ncclcheck_cluster: VERSION, steps: self.steps.clone(), nodes, network })?;
        for NodeRun { name, text, fate } in &self.nodes {
            for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                put(&SavedLine::Line { node: name.clone(), line: String::from_utf8_lossy(line).into_owned() })?;
            }
            put(&SavedLine::End { node: name.clone(), fate: fate.clone() })?;
        }
        if self.between == BetweenNodes::default() {
            return Ok(());
        }
        put(&SavedLine::Between { between: self.between.clone() })
    }

    /// Reads a record.
    ///
    /// # Errors
    /// The text is not a record, or names nodes that were not asked.
    pub fn read(text: &[u8]) -> Result<Self, ClusterError> {
        let wrong = |why: String| ClusterError::Record(format!("not a record of ncclcheck cluster: {why}"));
        let mut lines = text.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty());
        let read = |(number, line): (usize, &[u8])| {
            serde_json::from_slice(line).map_err(|_other| wrong(format!("line {} is of another format", number + 1)))
        };
        let first = lines.next().ok_or_else(|| wrong("it is empty".to_owned()))?;
        let SavedLine::Asked { ncclcheck_cluster: VERSION, steps, nodes, network } = read(first)? else {
            return Err(wrong(format!("its first line is not of version {VERSION}")));
        };
        let unended = || Fate::Failed("the record ends before this node did".to_owned());
        let node = |name| NodeRun { name, text: Vec::new(), fate: unended() };
        let nodes = node_names(&nodes.join(","))?.into_iter().map(node).collect();
        let mut run = Self { steps, nodes, network, between: BetweenNodes::default() };
        for line in lines {
            let (line, end) = match read(line)? {
                SavedLine::Line { node, line } => ((node, line + "\n"), None),
                SavedLine::End { node, fate } => ((node, String::new()), Some(fate)),
                SavedLine::Between { between } => {
                    run.between = between;
                    continue;
                }
                SavedLine::Asked { .. } => return Err(wrong("it begins twice".to_owned())),
            };
            let (name, text) = line;
            let found = run.nodes.iter_mut().find(|node| node.name == name);
            let node = found.ok_or_else(|| wrong(format!("the node {name} was not asked")))?;
            node.text.extend(text.as_bytes());
            if let Some(fate) = end {
                node.fate = fate;
            }
        }
        Ok(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_gives_the_run_again() {
        let node = |name: &str, text: &[u8], fate| NodeRun { name: name.to_owned(), text: text.to_vec(), fate };
        let run = ClusterRun {
            steps: vec!["limits".to_owned()],
            nodes: vec![
                node("a", b"{\"ncclcheck\":1}\n\"noise\"\n", Fate::Ended),
                node("b", b"", Fate::Absent("why\n  more".to_owned())),
                node("c", b"", Fate::Failed("why".to_owned())),
            ],
            ..ClusterRun::default()
        };
        let mut text = Vec::new();
        run.write(&mut text).unwrap();
        assert_eq!(ClusterRun::read(&text).unwrap(), run);
        let lines: Vec<_> = text.split_inclusive(|byte| *byte == b'\n').collect();
        let cut = ClusterRun::read(&lines[..4].concat()).unwrap();
        assert_eq!(cut.nodes[1].fate, Fate::Failed("the record ends before this node did".to_owned()));
        for (text, why) in [
            (&b""[..], "it is empty"),
            (b"{}", "line 1 is of another format"),
            (lines[1], "its first line is not of version 1"),
            (&[lines[0], lines[0]].concat(), "it begins twice"),
            (&[lines[0], b"{\"node\":\"x\",\"end\":\"ended\"}"].concat(), "the node x was not asked"),
            (&[lines[0], b"\nx"].concat(), "line 3 is of another format"),
        ] {
            let error = ClusterRun::read(text).unwrap_err().to_string();
            assert_eq!(error, format!("not a record of ncclcheck cluster: {why}"));
        }
    }
}
