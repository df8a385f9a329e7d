//! The application: judges, inspects or compares loaded images. The command line and other programs call the same
//! functions.

mod hosts;
mod launch_remedy;
pub mod probed;
pub mod remedy;

use facts::launch::{LaunchContainer, LaunchFile, Launched, Setting};
use facts::machine::Host;
use facts::{FactInputs, Facts};
use image::Image;
use image::reference::{Reference, engine_name};
use judge::consequences;
use judge::policy::Baseline;
use judge::rules::{ImageNames, Judgement, Outcome};
use judge::{Difference, Rulebook, RulesInForce, Side, Verdict};
use model::{FailOn, ImageConfig, ImageSummary, Owner, shell_word};
use probe::recording::Recording;
use report::Report;

pub use hosts::{HOST_FORM, HostDescription, HostsError, read_hosts};

/// A launch that sets and starts nothing.
static NO_LAUNCH: Launched = Launched { files: Vec::new(), options: Vec::new() };

/// The rules, hosts and policy settings that images are judged with.
#[derive(Debug)]
pub struct Check<'r> {
    rulebook: &'r Rulebook,
    hosts: &'r [HostDescription],
    launch: &'r Launched,
    job: Option<&'r Facts>,
    baseline: Option<&'r Baseline>,
    fail_on: Option<FailOn>,
    fail_for: Vec<Owner>,
}

/// Result of judging an image, for one host or for none.
#[derive(Debug)]
#[non_exhaustive]
pub struct Assessment<'r> {
    /// The host that the image was judged for, if any.
    pub host: Option<Host>,
    /// The facts about the image, and about the image on the host.
    pub facts: Facts,
    /// One judgement for each rule; `None` if no rules were evaluated.
    pub judgements: Option<Vec<Judgement<'r>>>,
    /// Notices: the policy that counted, and waivers and baseline entries that had no effect.
    pub notices: Vec<String>,
    /// Lowest severity that makes the verdict a failure.
    pub fail_on: FailOn,
    /// Owners whose findings count for the verdict.
    pub fail_for: Vec<Owner>,
    /// The rules and policies that judged, if any did.
    pub rules: Option<&'r RulesInForce>,
}

/// Collects the facts about an image in a launch without judging it.
pub fn inspect<'r>(image: &Image, launch: &Launched) -> Assessment<'r> {
    let reference = &image.summary.reference;
    Assessment {
        host: None,
        facts: facts(image, &launch.settings(reference)).with_launch(launch, reference),
        judgements: None,
        notices: Vec::new(),
        fail_on: FailOn::Error,
        fail_for: Owner::ALL.to_vec(),
        rules: None,
    }
}

/// Collects the facts about an image alone, on no host.
pub fn facts(image: &Image, launch: &[Setting]) -> Facts {
    Facts::collect(&FactInputs { rootfs: &image.rootfs, config: image.config.as_ref(), launch })
}

/// The facts as they would be without the variables and the command of the launch; `None` if it names neither.
fn facts_without_launch(image: &Image, launch: &[Setting]) -> Option<Facts> {
    let inputs = FactInputs { rootfs: &image.rootfs, config: image.own_config.as_ref(), launch: &[] };
    let names_command = image.config.as_ref().is_some_and(|config| config.start != config.start.without_job());
    (!launch.is_empty() || names_command).then(|| Facts::collect(&inputs))
}

/// Compares an image with an earlier one.
pub fn compare<'a>(
    before: (&'a ImageSummary, &'a Assessment<'_>),
    after: (&'a ImageSummary, &'a Assessment<'_>),
) -> Difference<'a> {
    let side = |(image, assessment): (&'a ImageSummary, &'a Assessment<'_>)| Side {
        reference: &image.reference,
        facts: &assessment.facts,
        judgements: assessment.judgements.as_deref().unwrap_or_default(),
    };
    Difference { before: side(before), after: side(after), fail_on: after.1.fail_on }
}

impl<'r> Check<'r> {
    /// Judges images alone by these rules, with the severities of their policy.
    pub fn new(rulebook: &'r Rulebook) -> Self {
        Self {
            rulebook,
            hosts: &[],
            launch: &NO_LAUNCH,
            job: None,
            baseline: None,
            fail_on: None,
            fail_for: Owner::ALL.to_vec(),
        }
    }

    /// Judges for each of these hosts.
    #[must_use]
    pub fn hosts(self, hosts: &'r [HostDescription]) -> Self {
        Self { hosts, ..self }
    }

    /// Starts containers as the launch of the job does.
    #[must_use]
    pub fn launch(self, launch: &'r Launched) -> Self {
        Self { launch, ..self }
    }

    /// Adds the facts of a job that ran the image.
    #[must_use]
    pub fn job(self, job: Option<&'r Facts>) -> Self {
        Self { job, ..self }
    }

    /// Accepts the problems of a baseline.
    #[must_use]
    pub fn baseline(self, baseline: Option<&'r Baseline>) -> Self {
        Self { baseline, ..self }
    }

    /// Sets the lowest severity that fails an image, in place of the policy's.
    #[must_use]
    pub fn fail_on(self, fail_on: Option<FailOn>) -> Self {
        Self { fail_on, ..self }
    }

    /// Counts only findings of these owners.
    #[must_use]
    pub fn fail_for(self, fail_for: Vec<Owner>) -> Self {
        Self { fail_for, ..self }
    }

    /// Judges what a launch gives the containers of each group, without their images. The rules are those that need no image.
    pub fn run_launch(&self) -> Vec<(ImageSummary, Vec<Assessment<'r>>)> {
        let judged = |(file, containers): (&LaunchFile, Vec<LaunchContainer>)| {
            let image = containers.first().and_then(|container| container.image.clone());
            let note = match image {
                Some(image) => format!("only the launch is judged: the image {image} was not read"),
                None => "only the launch is judged: it names no image".to_owned(),
            };
            let names = containers.iter().map(|container| container.name.as_str());
            let reference = std::iter::once(file.name.as_str()).chain(names).collect::<Vec<_>>().join(", ");
            let summary = ImageSummary { reference, notes: vec![note], ..ImageSummary::default() };
            let assessments = self.judged_containers(&summary, file, &containers);
            (summary, assessments)
        };
        self.launch.groups().into_iter().map(judged).collect()
    }

    /// Judges what a launch file gives these of its containers.
    fn judged_containers(
        &self,
        summary: &ImageSummary,
        file: &LaunchFile,
        containers: &[LaunchContainer],
    ) -> Vec<Assessment<'r>> {
        let facts = Facts::of_containers(file, containers, &self.launch.options);
        self.judged(summary, facts, Some(&Facts::default()))
    }

    /// Judges an image once, or once for each host.
    pub fn run(&self, image: &Image) -> Vec<Assessment<'r>> {
        let with_job = |facts: Facts| match self.job {
            Some(job) => facts.with_job(job),
            None => facts,
        };
        let reference = &image.summary.reference;
        let settings = self.launch.settings(reference);
        let without_launch = facts_without_launch(image, &settings).map(with_job);
        let facts = facts(image, &settings).with_launch(self.launch, reference);
        self.judged(&image.summary, with_job(facts), without_launch.as_ref())
    }

    /// Judges an image as if it had this configuration.
    fn judged_with(&self, image: &Image, config: &ImageConfig) -> Vec<Assessment<'r>> {
        let reference = &image.summary.reference;
        let settings = self.launch.settings(reference);
        let inputs = FactInputs { rootfs: &image.rootfs, config: Some(config), launch: &settings };
        self.judged(&image.summary, Facts::collect(&inputs).with_launch(self.launch, reference), None)
    }

    fn judged(&self, image: &ImageSummary, facts: Facts, without_launch: Option<&Facts>) -> Vec<Assessment<'r>> {
        if self.hosts.is_empty() {
            return vec![self.assess(facts, without_launch, image)];
        }
        let on = |host: &HostDescription| {
            let without_launch = without_launch.map(|facts| host.add_to(facts));
            let assessment = self.assess(host.add_to(&facts), without_launch.as_ref(), image);
            Assessment { host: Some(host.host.clone()), ..assessment }
        };
        self.hosts.iter().map(on).collect()
    }

    /// Judges facts from any source: applies the rules, then the policy's waivers, then the baseline, and finds the
    /// causes of what remains. `without_launch` holds the facts as they would be without the variables of a launch: a
    /// problem of the image that only the launch brings about belongs to the arrangement.
    pub fn assess(&self, facts: Facts, without_launch: Option<&Facts>, image: &ImageSummary) -> Assessment<'r> {
        let (mut judgements, mut notices) = self.rulebook.judge(&facts, image, &names(image));
        if let Some(facts) = without_launch {
            let has_problem = |outcome: &Outcome| !matches!(outcome, Outcome::Pass | Outcome::NotApplicable);
            let (without_launch, _) = self.rulebook.judge(facts, image, &names(image));
            for (judgement, without) in judgements.iter_mut().zip(&without_launch) {
                let is_of_launch = has_problem(&judgement.outcome) && !has_problem(&without.outcome);
                if judgement.owner == Owner::Image && is_of_launch {
                    judgement.owner = Owner::Arrangement;
                }
            }
        }
        if let Some(baseline) = self.baseline {
            let (accepted, more) = baseline.accept(judgements);
            judgements = accepted;
            notices.extend(more);
        }
        consequences::fold(&mut judgements);
        Assessment {
            host: None,
            facts,
            judgements: Some(judgements),
            notices,
            fail_on: self.rulebook.fail_on(self.fail_on),
            fail_for: self.fail_for.clone(),
            rules: Some(self.rulebook.in_force()),
        }
    }
}

/// The names of an image for commands, each of which accepts the name that it gets.
pub(crate) fn names(image: &ImageSummary) -> ImageNames {
    // What ran in place is the root file system of the machine or the container, in which an engine runs nothing.
    if image.source.is_empty() || image.source == OWN_ROOT {
        let reference = Some(OWN_ROOT.to_owned());
        return ImageNames { engine: None, reference, run: Some("--in-place".to_owned()) };
    }
    let engine = engine_name(image);
    // A probe passes the name on to the engine. It knows no place of a store.
    let is_by_place = image.reference.contains('[');
    let run = engine.as_ref().map(|name| quoted(if is_by_place { name } else { &image.reference }));
    ImageNames { engine, reference: Some(quoted(&image.reference)), run }
}

/// The reference of the root file system of this process.
const OWN_ROOT: &str = "root:/";

/// A reference as one word of a shell's command, which is not an option.
fn quoted(reference: &str) -> String {
    let is_option = reference.starts_with('-') && !matches!(reference.parse(), Ok(Reference::Stdin(_)));
    shell_word(&if is_option { format!("./{reference}") } else { reference.to_owned() })
}

impl Assessment<'_> {
    /// The overall verdict; `None` if no rules were evaluated.
    pub fn verdict(&self) -> Option<Verdict> {
        self.judgements.as_deref().map(|judgements| Verdict::of(judgements, self.fail_on, &self.fail_for))
    }

    /// The report on the image, with the recording of its run, if it ran.
    pub fn report<'a>(&'a self, image: &'a ImageSummary, probe: Option<&'a Recording>) -> Report<'a> {
        Report {
            image,
            host: self.host.as_ref(),
            facts: &self.facts,
            judgements: self.judgements.as_deref(),
            fail_on: self.fail_on,
            fail_for: &self.fail_for,
            notices: &self.notices,
            probe,
            rules: self.rules,
            run: None,
            dockerfile: None,
        }
    }
}
