//! Lists of a registry: the tags of a repository, and the repositories (OCI distribution-spec, "Listing Tags"; Docker
//! Registry HTTP API V2, "Listing Repositories", which most public registries refuse).

use std::collections::BTreeMap;

use reqwest::Url;
use reqwest::header::{HeaderMap, LINK};
use serde_json::Value;

use super::response_error::RequestedObject;
use super::retry::Patience;
use super::{Registry, RegistryContacts, open_patiently, patiently};
use crate::source::{AccessOptions, SourceError, read_bounded};

/// Maximum number of pages read: of a thousand entries each.
const MOST_PAGES: usize = 1000;

/// The tags of a repository, such as `registry.example/team/train`, in the registry's order.
pub(crate) fn tags(repository: &str, options: &AccessOptions) -> Result<Vec<String>, SourceError> {
    let registry = open(repository, options)?;
    list(&registry, "tags/list?n=1000", "tags", RequestedObject::Tags { name: &registry.repository })
}

/// The repositories of a registry, without its host, in the registry's order.
pub(crate) fn repositories(host: &str, options: &AccessOptions) -> Result<Vec<String>, SourceError> {
    // The name after the host only completes the reference.
    let registry = open(&format!("{host}/catalog"), options)?;
    list(&registry, "/v2/_catalog?n=1000", "repositories", RequestedObject::Catalog { host })
}

fn open(repository: &str, options: &AccessOptions) -> Result<Registry, SourceError> {
    let name = repository
        .parse()
        .map_err(|error| SourceError::invalid(format!("{repository} is not a repository: {error}")))?;
    open_patiently(&name, options, &RegistryContacts::default(), Patience::default())
}

/// Reads the lists that the pages have in a field.
fn list(
    registry: &Registry,
    first: &str,
    field: &str,
    object: RequestedObject<'_>,
) -> Result<Vec<String>, SourceError> {
    let mut path = first.to_owned();
    let mut found = Vec::new();
    for _ in 0..MOST_PAGES {
        let (bytes, headers) = patiently(registry.patience, || {
            let answer = registry.ask(&path, &HeaderMap::new(), object)?;
            let headers = answer.headers().clone();
            let bytes = read_bounded(answer.response, registry.document_limit, &object.to_string())?;
            Ok((bytes, headers))
        })?;
        let page = serde_json::from_slice::<BTreeMap<String, Value>>(&bytes)
            .and_then(|mut page| serde_json::from_value::<Option<Vec<String>>>(page.remove(field).unwrap_or_default()))
            .map_err(|error| SourceError::invalid(format!("{object}: the answer is not a list: {error}")))?
            .unwrap_or_default();
        let is_last = page.is_empty();
        found.extend(page);
        match next(&registry.base, &path, &headers).filter(|_| !is_last) {
            Some(next) => path = next,
            None => return Ok(found),
        }
    }
    Err(SourceError::invalid(format!("{object}: the list has more than {MOST_PAGES} pages")))
}

/// The next page, if any (RFC 8288), at the same registry: no other host gets the credentials.
fn next(base: &Url, path: &str, headers: &HeaderMap) -> Option<String> {
    let link = headers.get(LINK)?.to_str().ok()?;
    let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
    let is_next = parameters.split(';').any(|parameter| matches!(parameter.trim(), "rel=\"next\"" | "rel=next"));
    let next = base.join(path).ok()?.join(target).ok().filter(|next| is_next && next.origin() == base.origin())?;
    Some(next.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_at_the_same_registry() {
        let base: Url = "https://registry.example/v2/a/b/".parse().unwrap();
        let next = |link: &str| {
            let headers = HeaderMap::from_iter([(LINK, link.parse().unwrap())]);
            next(&base, "tags/list?n=100", &headers)
        };
        let all = "https://registry.example/v2/a/b/tags/list?n=2";
        assert_eq!(next("</v2/a/b/tags/list?n=2>; rel=\"next\"").as_deref(), Some(all));
        assert_eq!(next("<?n=2>; rel=next").as_deref(), Some(all));
        assert_eq!(next(&format!("<{all}>; rel=\"next\"")).as_deref(), Some(all));
        for other in ["</v2/a?n=2>; rel=\"prev\"", "<https://elsewhere.example/>; rel=\"next\"", "next", "<"] {
            assert_eq!(next(other), None, "{other}");
        }
    }
}
