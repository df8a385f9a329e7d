//! Lists of referrers, from registries of every age.

use super::*;

const KIND: &str = "application/vnd.a.b+json";

fn subject() -> Digest {
    digest_as(None, b"subject")
}

/// A list of these artifacts: type, and the content of which the digest is taken.
fn list(artifacts: &[(&str, &str)]) -> Vec<u8> {
    let descriptor = |(kind, of): &(&str, &str)| {
        let digest = digest_as(None, of.as_bytes());
        format!(r#"{{"mediaType": "{TYPE}", "artifactType": "{kind}", "digest": "{digest}", "size": 2}}"#)
    };
    let descriptors: Vec<_> = artifacts.iter().map(descriptor).collect();
    format!(r#"{{"schemaVersion": 2, "manifests": [{}]}}"#, descriptors.join(",")).into_bytes()
}

/// Lists the referrers at a registry that answers for the list, and for the tag that replaces it.
fn found(answer: fn(&str) -> Reply, tag: Option<Vec<u8>>) -> (Result<Vec<Digest>, String>, Vec<String>) {
    let path = format!("/v2/a/b/referrers/{}", subject());
    let tagged = format!("/v2/a/b/manifests/sha256-{}", subject().hex());
    let server = Server::start(move |ask| match &tag {
        _ if ask.path == "/v2/" => Reply::new(200, b"{}"),
        _ if ask.path == path => answer(&ask.query),
        Some(list) if ask.path == tagged => Reply::new(200, list),
        _ => Reply::new(404, b""),
    });
    let found = anonymous(&server).referrers(&subject(), KIND).map_err(|error| error.to_string());
    (found, server.paths())
}

#[test]
fn pages_are_followed_and_other_types_are_skipped() {
    let (found, _) = found(
        |query| match query {
            "artifactType=application%2Fvnd%2Ea%2Eb%2Bjson" => {
                let target = format!("</v2/a/b/referrers/{}?page=2>; rel=\"next\"", subject());
                Reply::new(200, &list(&[("c/d", "0"), (KIND, "1")])).header("Link", &target)
            }
            "page=2" => Reply::new(200, &list(&[(KIND, "2")])),
            other => panic!("{other}"),
        },
        None,
    );
    assert_eq!(found.unwrap(), [digest_as(None, b"1"), digest_as(None, b"2")]);
}

#[test]
fn the_number_of_pages_is_limited() {
    let endless = |_: &str| Reply::new(200, &list(&[])).header("Link", "<?page=2>; rel=\"next\"");
    let (found, paths) = found(endless, None);
    assert_eq!(found.unwrap(), []);
    assert_eq!(paths.iter().filter(|path| path.contains("/referrers/")).count(), 16);
}

#[test]
fn a_tag_replaces_a_missing_list() {
    for status in [|_: &str| Reply::new(404, b"404 page not found"), |_: &str| Reply::new(400, b"")] {
        let (tagged, _) = found(status, Some(list(&[(KIND, "1")])));
        assert_eq!(tagged.unwrap(), [digest_as(None, b"1")]);
        let (none, _) = found(status, None);
        assert_eq!(none.unwrap(), []);
    }
}

#[test]
fn an_answer_that_is_not_a_list_is_an_error() {
    let (found, _) = found(|_| Reply::new(200, b"<html>"), None);
    assert!(found.unwrap_err().contains("the answer is not an image index"));
}
