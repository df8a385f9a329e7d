//! Each small world has one fault, and it is found: the rules that do not pass are these and no others.

use crate::support::check;

#[test]
fn faults_are_found_and_nothing_else() {
    for (world, exit, expected) in [("good", 0, &[][..]), ("no-torch", 1, &["torch/not-found"])] {
        let (report, status) = check(&crate::support::world(world).display().to_string(), None);
        let failed: Vec<&str> = report["judgements"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|judgement| matches!(judgement["outcome"].as_str(), Some("fail" | "unknown")))
            .map(|judgement| judgement["rule"].as_str().unwrap())
            .collect();
        assert_eq!(failed, expected, "{world}");
        assert_eq!(status, exit, "{world}");
    }
}
