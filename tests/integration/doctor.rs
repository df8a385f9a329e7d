//! `ncclcheck doctor` on this machine.

use crate::support::run;

#[test]
fn the_exit_status_says_if_something_is_broken() {
    let output = run(&["doctor", "--format", "json"], None);
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let offers = document["offers"].as_array().unwrap();
    let is_broken = offers.iter().any(|offer| offer["state"] == "broken");
    assert_eq!(output.status.code(), Some(i32::from(is_broken)), "{document}");
    for offer in offers {
        assert_eq!(offer["state"] == "broken", offer["help"].is_string(), "{offer}");
    }
    let areas: Vec<_> = offers.iter().map(|offer| offer["area"].as_str().unwrap()).collect();
    assert!(["engines", "registries", "gpus", "rdma", "system", "folders"].iter().all(|area| areas.contains(area)));
}

#[test]
fn an_engine_that_the_user_names_must_be_there() {
    let output = run(&["doctor"], None);
    let text = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("broken unix:///nonexistent/docker.sock (DOCKER_HOST): no such socket"), "{text}");
    assert!(text.contains("fix start the engine"), "{text}");
    assert_eq!(output.status.code(), Some(1));
}
