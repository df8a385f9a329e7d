//! The referrers of a manifest (OCI distribution-spec, "Listing Referrers"), as the registry reports them. Anyone who
//! can push to the repository can add to the list.

use oci_spec::image::ImageIndex;
use reqwest::Url;
use reqwest::header::{HeaderMap, LINK};

use super::Registry;
use super::response_error::RequestedObject;
use crate::image::go_json::parse_document;
use crate::image::source::{SourceError, SourceErrorKind};
use crate::model::Digest;

/// Maximum number of pages read.
const MOST_PAGES: usize = 16;

/// The manifests of one artifact type that refer to another manifest, in the registry's order.
pub(super) fn list(registry: &Registry, manifest: &Digest, artifact_type: &str) -> Result<Vec<Digest>, SourceError> {
    let object = RequestedObject::Referrers { name: &registry.name, digest: manifest };
    let mut path = format!("referrers/{manifest}?artifactType={}", escaped(artifact_type));
    let mut found = Vec::new();
    for page in 0..MOST_PAGES {
        let (bytes, headers) = match registry.document(&path, object) {
            // For registries without this API, clients keep the list under a tag ("Referrers Tag Schema").
            Err(error) if page == 0 && matches!(error.kind(), SourceErrorKind::NotFound | SourceErrorKind::Invalid) => {
                let tag = format!("manifests/{}-{}", manifest.algorithm(), manifest.hex());
                match registry.document(&tag, object) {
                    Err(error) if error.kind() == SourceErrorKind::NotFound => break,
                    answer => (answer?.0, HeaderMap::new()),
                }
            }
            answer => answer?,
        };
        let index: ImageIndex = parse_document(&bytes)
            .map_err(|error| SourceError::invalid(format!("{object}: the answer is not an image index: {error}")))?;
        let is_wanted = |kind: &oci_spec::image::MediaType| kind.to_string() == artifact_type;
        for descriptor in index.manifests() {
            // A registry may ignore the artifactType filter.
            if descriptor.artifact_type().as_ref().is_some_and(is_wanted) {
                found.push(descriptor.digest().to_string().parse()?);
            }
        }
        match next(&registry.base, &path, &headers) {
            Some(next) => path = next,
            None => break,
        }
    }
    Ok(found)
}

/// The next page, if any (RFC 8288), at the same registry: no other host gets the credentials.
pub(super) fn next(base: &Url, path: &str, headers: &HeaderMap) -> Option<String> {
    let link = headers.get(LINK)?.to_str().ok()?;
    let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
    let is_next = parameters.split(';').any(|parameter| matches!(parameter.trim(), "rel=\"next\"" | "rel=next"));
    let next = base.join(path).ok()?.join(target).ok().filter(|next| is_next && next.origin() == base.origin())?;
    Some(next.into())
}

/// Percent-encodes a media type for a query.
fn escaped(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_at_the_same_registry() {
        let base: Url = "https://registry.example/v2/a/b/".parse().unwrap();
        let next = |link: &str| {
            let headers = HeaderMap::from_iter([(LINK, link.parse().unwrap())]);
            next(&base, "referrers/sha256:00?artifactType=a", &headers)
        };
        let all = "https://registry.example/v2/a/b/referrers/sha256:00?n=2";
        assert_eq!(next("</v2/a/b/referrers/sha256:00?n=2>; rel=\"next\"").as_deref(), Some(all));
        assert_eq!(next("<?n=2>; rel=next").as_deref(), Some(all));
        assert_eq!(next(&format!("<{all}>; rel=\"next\"")).as_deref(), Some(all));
        for other in ["</v2/a?n=2>; rel=\"prev\"", "<https://elsewhere.example/>; rel=\"next\"", "next", "<"] {
            assert_eq!(next(other), None, "{other}");
        }
    }
}
