//! `ncclcheck cluster manifest`: a file that starts a test of nodes, for Slurm or for Kubernetes.

use super::args::cluster::{ManifestArgs, Scheduler};
use super::{CliError, ExitStatus, output};

/// Prints the file.
pub(super) fn manifest(asked: &ManifestArgs) -> Result<ExitStatus, CliError> {
    output::stdout(|out| out.write_all(text(asked).as_bytes()))?;
    Ok(ExitStatus::Pass)
}

fn text(asked: &ManifestArgs) -> String {
    let image = asked.image.as_deref().unwrap_or_default();
    let (template, image) = match asked.scheduler {
        Scheduler::Slurm if image.is_empty() => (include_str!("manifest/slurm.sh"), String::new()),
        Scheduler::Slurm => (include_str!("manifest/slurm.sh"), format!(" '{image}'")),
        Scheduler::Kubernetes => (include_str!("manifest/kubernetes.yaml"), image.to_owned()),
    };
    let text = template.replace("{nodes}", &asked.nodes.to_string()).replace("{gpus}", &asked.gpus.to_string());
    text.replace("{image}", &image)
}

#[cfg(test)]
mod tests {
    use facts::launch;
    use model::document::{Document, YamlNode};

    use super::*;

    fn of(scheduler: Scheduler, image: Option<&str>) -> String {
        text(&ManifestArgs { scheduler, image: image.map(str::to_owned), nodes: 3, gpus: 4 })
    }

    #[test]
    fn the_manifest_is_yaml_that_gives_the_container_what_nccl_needs() {
        let text = of(Scheduler::Kubernetes, Some("registry.example/team/train:7"));
        let document: YamlNode = Document { name: "job.yaml", text: &text }.parse().unwrap();
        assert_eq!(document.at(&["spec", "completions"]).and_then(YamlNode::as_str), Some("3"));
        let file = launch::read("job.yaml", &text).unwrap();
        let [container] = &*file.containers else { panic!("{file:?}") };
        assert_eq!(container.image.as_deref(), Some("registry.example/team/train:7"));
        let given = &container.given;
        let numbers = [&given.gpus, &given.copies].map(|said| said.as_ref().and_then(|said| said.value));
        assert_eq!((numbers, given.locks_memory), ([Some(4), Some(3)], true));
        assert!(format!("{:?}", given.shm).contains(&(16_u64 << 30).to_string()), "{given:?}");
        assert_eq!(container.entrypoint.as_deref(), Some(&["sleep", "3600"].map(str::to_owned)[..]));
    }

    #[test]
    fn the_script_has_an_image_only_where_it_is_given() {
        assert!(of(Scheduler::Slurm, Some("r#train:7")).ends_with(".bad\" 'r#train:7'\n"));
        assert!(of(Scheduler::Slurm, None).ends_with(".bad\"\n"));
        assert!(!of(Scheduler::Slurm, None).contains('{'));
    }
}
