//! The folders where an engine on this machine keeps the unpacked layers of an image (Engine API, ImageInspect,
//! `GraphDriver`).

use std::path::PathBuf;

use bollard::models::ImageInspect;

use crate::source::SourceError;
use model::{Digest, ImageConfig, Platform, StartChoice, UnknownConfig, printable};

use super::Engine;

/// An image in an engine's own folders.
#[derive(Clone, Debug)]
pub struct EngineFolders {
    /// The image ID, which the engine reports as the digest of the configuration.
    pub id: Digest,
    /// The layers' folders, lowest first, each with the diff ID that the engine reports.
    pub layers: Vec<(PathBuf, Digest)>,
    /// The configuration as the engine reports it.
    pub config: ImageConfig,
}

impl Engine {
    /// Locates the layers of the image `name`. Only Docker's driver overlay2 and Podman's overlay have a folder for
    /// each.
    pub fn folders(&self, name: &str) -> Result<EngineFolders, SourceError> {
        let refused = |why: &str| {
            SourceError::invalid(format!(
                "cannot read the layers of '{}' in {} as folders: {why}",
                printable(name),
                self.describe()
            ))
            .with_hint("name it docker-daemon:NAME to have the engine export the image".to_owned())
        };
        if !self.is_local() {
            return Err(refused("the engine may run on another machine"));
        }
        let id = self.find(name)?.id;
        folders_of(self.inspect(name)?, id).map_err(|why| refused(&why))
    }
}

fn folders_of(image: ImageInspect, id: Digest) -> Result<EngineFolders, String> {
    let driver = image.graph_driver.ok_or("the engine does not report where they are")?;
    if !matches!(driver.name.as_str(), "overlay2" | "overlay") {
        return Err(format!("its storage driver is {}; only overlay2 is supported", printable(&driver.name)));
    }
    let folders = |key: &str| driver.data.get(key).filter(|list| !list.is_empty());
    // LowerDir lists the uppermost folder first.
    let upper = folders("UpperDir").ok_or("the engine does not report where they are")?;
    let lower = folders("LowerDir").into_iter().flat_map(|list| list.split(':')).collect::<Vec<_>>();
    let paths: Vec<PathBuf> = lower.into_iter().rev().chain([upper.as_str()]).map(PathBuf::from).collect();
    let diff_ids = image.root_fs.and_then(|files| files.layers).unwrap_or_default();
    if paths.len() != diff_ids.len() || !paths.iter().all(|path| path.is_absolute()) {
        return Err(format!("the engine names {} folders for {} layers", paths.len(), diff_ids.len()));
    }
    let diff_ids = diff_ids.iter().map(|text| text.parse::<Digest>().map_err(|error| error.to_string()));
    let diff_ids = diff_ids.collect::<Result<Vec<_>, _>>()?;
    let some = |text: Option<String>| text.filter(|text| !text.is_empty());
    let said = image.config.unwrap_or_default();
    let pair = |text: String| {
        text.split_once('=').map_or((text.clone(), String::new()), |(k, v)| (k.to_owned(), v.to_owned()))
    };
    let config = ImageConfig {
        platform: some(image.os).zip(some(image.architecture)).map(|(os, architecture)| Platform {
            os,
            architecture,
            variant: some(image.variant),
        }),
        environment: said.env.into_iter().flatten().map(pair).collect(),
        entrypoint: said.entrypoint.unwrap_or_default(),
        command: said.cmd.unwrap_or_default(),
        user: said.user.unwrap_or_default(),
        working_directory: said.working_dir.unwrap_or_default(),
        labels: said.labels.into_iter().flatten().collect(),
        build_arguments: Vec::new(),
        start: StartChoice::default(),
        unknown: UnknownConfig::default(),
    };
    Ok(EngineFolders { id, layers: paths.into_iter().zip(diff_ids).collect(), config })
}

#[cfg(test)]
mod tests {
    use super::super::tests::fake::{Fake, respond};
    use super::*;

    const ID: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn ask(driver: &str, layers: usize) -> Result<EngineFolders, String> {
        let layers = vec![format!("\"{ID}\""); layers].join(",");
        let json = format!(
            r#"{{"Id":"{ID}","Os":"linux","Architecture":"amd64","Config":{{"Env":["A=b=c"],"User":"u"}},
                "GraphDriver":{driver},"RootFS":{{"Type":"layers","Layers":[{layers}]}}}}"#
        );
        let fake = Fake::new("1.47", move |_, stream| respond(stream, "200 OK", json.as_bytes()));
        fake.engine().folders("torch:2.9").map_err(|error| error.to_string())
    }

    #[test]
    fn folders_are_listed_from_the_lowest_on() {
        let driver = r#"{"Name":"overlay2","Data":{"LowerDir":"/o/b/diff:/o/a/diff","UpperDir":"/o/c/diff","MergedDir":"/o/c/merged"}}"#;
        let image = ask(driver, 3).unwrap();
        let paths: Vec<_> = image.layers.iter().map(|(path, _)| path.to_str().unwrap()).collect();
        assert_eq!(paths, ["/o/a/diff", "/o/b/diff", "/o/c/diff"]);
        assert_eq!((image.config.environment["A"].as_str(), image.config.user.as_str()), ("b=c", "u"));
        let one = ask(r#"{"Name":"overlay","Data":{"UpperDir":"/o/c/diff"}}"#, 1).unwrap();
        assert_eq!(one.layers.len(), 1);
    }

    #[test]
    fn incomplete_folders_are_refused() {
        for (driver, layers, why) in [
            (r#"{"Name":"btrfs","Data":{}}"#, 1, "its storage driver is btrfs"),
            (r#"{"Name":"overlay2","Data":{"UpperDir":"/o/c/diff"}}"#, 2, "names 1 folders for 2 layers"),
            (r#"{"Name":"overlay2","Data":{"UpperDir":"o/c/diff"}}"#, 1, "names 1 folders for 1 layers"),
            (r#"{"Name":"overlay2","Data":{"LowerDir":"/o/c/diff"}}"#, 1, "does not report where"),
            ("null", 1, "does not report where"),
        ] {
            let error = ask(driver, layers).unwrap_err();
            assert!(error.contains(why) && error.ends_with("to have the engine export the image"), "{error}");
        }
    }
}
