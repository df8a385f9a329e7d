//! `ncclcheck audit manifest`: what to submit to an engine.

use serde_json::{Value, json};

use crate::cli::args::audit::{AuditManifest, KubernetesArgs, ManifestArgs};
use crate::cli::{CliError, ExitStatus, output};
use model::shell_word;

/// Prints a manifest.
pub(super) fn print(asked: &AuditManifest) -> Result<ExitStatus, CliError> {
    let text = match asked {
        AuditManifest::Slurm { common, partition } => slurm(common, partition.as_deref())?,
        AuditManifest::Kubernetes(asked) => format!("{:#}\n", kubernetes(asked)?),
    };
    output::stdout(|out| out.write_all(text.as_bytes()))?;
    Ok(ExitStatus::Pass)
}

impl ManifestArgs {
    /// The arguments of `ncclcheck`.
    fn words(&self) -> Result<Vec<String>, CliError> {
        let run = self.store.run.as_deref().ok_or_else(|| {
            CliError::Usage("--run is missing: the tasks of a manifest work on one run\n  help: give the name that `audit plan` printed".to_owned())
        })?;
        let minutes = self.minutes - 5;
        let fixed = ["audit", "run", "--store", &self.store.store, "--run", run, "--shard", "auto"].map(str::to_owned);
        let shards = ["--shards".to_owned(), self.shards.to_string(), "--deadline".to_owned(), format!("{minutes}m")];
        let jobs = ["--jobs".to_owned(), self.cpus.to_string()];
        Ok(fixed.into_iter().chain(shards).chain(jobs).chain(self.arguments.iter().cloned()).collect())
    }
}

/// A batch script. Slurm does not requeue a task that a signal killed; the other tasks take over its work.
fn slurm(asked: &ManifestArgs, partition: Option<&str>) -> Result<String, CliError> {
    let ManifestArgs { shards, minutes, cpus, .. } = asked;
    let partition = partition.map(|name| format!("#SBATCH --partition={name}\n")).unwrap_or_default();
    if partition.lines().count() > 1 {
        return Err(CliError::Usage("--partition: expected a name".to_owned()));
    }
    let words: Vec<_> = asked.words()?.iter().map(|word| shell_word(word)).collect();
    Ok(format!(
        "#!/bin/sh\n\
         #SBATCH --job-name=ncclcheck-audit\n\
         #SBATCH --array=0-{}\n\
         #SBATCH --ntasks=1\n\
         #SBATCH --cpus-per-task={cpus}\n\
         #SBATCH --time={minutes}\n\
         #SBATCH --requeue\n\
         {partition}\n\
         ncclcheck {} && exit 0\n\
         status=$?\n\
         # 75: not finished, such as for a registry that is down. Slurm runs the task again, at most three times.\n\
         if [ \"$status\" = 75 ] && [ \"${{SLURM_RESTART_COUNT:-0}}\" -lt 3 ]; then\n  \
           scontrol requeue \"$SLURM_JOB_ID\"\n\
         fi\n\
         exit \"$status\"\n",
        shards.get() - 1,
        words.join(" ")
    ))
}

/// An Indexed Job. A failure that may pass restarts the pod of that index; a usage error ends the index.
fn kubernetes(asked: &KubernetesArgs) -> Result<Value, CliError> {
    let ManifestArgs { store, shards, minutes, cpus, .. } = &asked.common;
    let place = &store.store;
    let is_path = !place.contains("://");
    if is_path && (asked.claim.is_none() || !place.starts_with('/')) {
        let why = format!("--store {place}: pods share a folder only by a volume");
        return Err(CliError::Usage(format!(
            "{why}\n  help: give --claim NAME and an absolute path, or a store in s3://, gs:// or az://"
        )));
    }
    let mut volumes = vec![json!({"name": "tmp", "emptyDir": {"sizeLimit": "8Gi"}})];
    let mut mounts = vec![json!({"name": "tmp", "mountPath": "/tmp"})];
    if let Some(claim) = &asked.claim {
        volumes.push(json!({"name": "store", "persistentVolumeClaim": {"claimName": claim}}));
        mounts.push(json!({"name": "store", "mountPath": place}));
    }
    if let Some(secret) = &asked.registry_secret {
        let items = json!([{"key": ".dockerconfigjson", "path": "config.json"}]);
        volumes.push(json!({"name": "logins", "secret": {"secretName": secret, "items": items}}));
        mounts.push(json!({"name": "logins", "mountPath": "/logins", "readOnly": true}));
    }
    let mut words = asked.common.words()?;
    if asked.registry_secret.is_some() {
        words.extend(["--authfile", "/logins/config.json"].map(str::to_owned));
    }
    let mut container = json!({
        "name": "audit",
        "image": asked.image,
        "args": words,
        "env": [{"name": "HOME", "value": "/tmp"}],
        "resources": {
            "requests": {"cpu": cpus.to_string(), "memory": "1Gi"},
            "limits": {"memory": "4Gi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": mounts,
    });
    if let (Some(secret), Some(container)) = (&asked.secret, container.as_object_mut()) {
        container.insert("envFrom".to_owned(), json!([{"secretRef": {"name": secret}}]));
    }
    Ok(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": "ncclcheck-audit-"},
        "spec": {
            "completionMode": "Indexed",
            "completions": shards,
            "parallelism": shards,
            "backoffLimitPerIndex": 3,
            "ttlSecondsAfterFinished": 86400,
            "podFailurePolicy": {"rules": [
                {"action": "FailIndex", "onExitCodes": {"containerName": "audit", "operator": "In", "values": [2]}},
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
            ]},
            "template": {"spec": {
                "restartPolicy": "Never",
                "activeDeadlineSeconds": u64::from(*minutes) * 60,
                "terminationGracePeriodSeconds": 60,
                "automountServiceAccountToken": false,
                "securityContext": {
                    "runAsNonRoot": true,
                    "runAsUser": 65532,
                    "runAsGroup": 65532,
                    "fsGroup": 65532,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [container],
                "volumes": volumes,
            }},
        },
    }))
}
