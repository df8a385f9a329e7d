//! Facts about what a launch gives the container of an image.

use std::collections::BTreeMap;

use model::{Fact, Gap, ImagePath, Value};

use super::container::meant;
use super::details::Detail;
use super::given::{Given, Said, Starter, site};
use super::ranks::{self, Ranks};
use super::{LaunchContainer, LaunchFile, Launched, Setting, settings};
use crate::environment::SettingList;
use crate::map_entries::MapEntries;
use crate::value::FactType;
use crate::{Facts, key};
use key::Key;

impl Facts {
    /// Adds what the launch gives the containers of an image. The last file that starts one counts.
    #[must_use]
    pub fn with_launch(self, launch: &Launched, reference: &str) -> Self {
        let containers =
            |file: &LaunchFile| meant(&file.containers, reference).into_iter().cloned().collect::<Vec<_>>();
        let found = launch.files.iter().rev().map(|file| (file, containers(file))).find(|(_, found)| !found.is_empty());
        match found {
            Some((file, containers)) => self.with_containers(file, &containers),
            None => self,
        }
    }

    /// Adds what a launch file gives these of its containers. One without a GPU runs no rank of the job.
    #[must_use]
    pub fn with_containers(mut self, file: &LaunchFile, containers: &[LaunchContainer]) -> Self {
        let with_gpu: Vec<_> = containers.iter().filter(|container| container.given.has_gpu).cloned().collect();
        if !with_gpu.is_empty() {
            add(file, &with_gpu, &mut self);
        }
        self
    }

    /// The facts about containers of a launch file whose image is not read: what the file gives them, and the variables that
    /// it sets.
    pub fn of_containers(file: &LaunchFile, containers: &[LaunchContainer], options: &[Setting]) -> Self {
        let own = containers.iter().flat_map(|container| &container.settings);
        let settings: Vec<_> = file.settings.iter().chain(own).chain(options).collect();
        let judged = settings.iter().filter(|setting| crate::is_judged(&setting.name));
        let last: BTreeMap<_, _> = judged.map(|setting| (setting.name.clone(), *setting)).collect();
        let value = |(name, setting): (&String, &&Setting)| Some((name.clone(), Value::Text(setting.value.clone()?)));
        let computed = last.iter().filter(|(_, setting)| setting.value.is_none());
        let gap = |setting: &Setting| Gap::new(format!("{} computes it when the job starts", setting.site));
        let entries = MapEntries {
            certain: Fact::seen(
                Value::Map(last.iter().filter_map(value).collect()),
                last.values().map(|setting| setting.site.clone()),
            ),
            gaps: computed.map(|(name, setting)| (name.clone(), gap(setting))).collect(),
            others: None,
        };
        let mut facts = Self::default();
        facts.insert_entries(key::ENV_EFFECTIVE.definition, entries);
        let names = settings.iter().map(|setting| setting.name.clone()).collect();
        facts.insert(key::LAUNCH_VARIABLES, Fact::seen(names, settings.iter().map(|setting| setting.site.clone())));
        facts.with_containers(file, containers)
    }
}

/// Adds the facts about containers of a file, each of which is unknown if they differ in it.
fn add(file: &LaunchFile, containers: &[LaunchContainer], facts: &mut Facts) {
    let name = file.name.as_str();
    let mut insert = Inserter { file: name, containers, facts };
    let titles: Vec<_> = containers.iter().map(|one| format!("{} ({name}:{})", one.name, one.line)).collect();
    insert.facts.insert(key::CONTAINER_NAME, Fact::known(titles.join(", ")));
    let runs_torch = insert.containers.iter().any(|one| shows_torch(one, insert.facts));
    insert.facts.insert(key::CONTAINER_RUNS_TORCH, Fact::known(runs_torch));
    insert.each(key::CONTAINER_STARTER, |one| Fact::known(one.given.starter.name().to_owned()));
    insert.each(key::CONTAINER_GPUS, |one| of_said(one.given.gpus.clone(), name, "the number of GPUs"));
    insert.each(key::CONTAINER_SHM, |one| one.given.shm_bytes(name, one.line));
    insert.each(key::CONTAINER_NETWORK, |one| one.given.network(name, one.line));
    insert.each(key::CONTAINER_RDMA, |one| one.given.rdma(name));
    insert.each(key::CONTAINER_LOCKS_MEMORY, |one| one.given.locks_memory(name));
    insert.each(key::CONTAINER_MEMORY, |one| of_said(one.given.memory.clone(), name, "the memory limit"));
    insert.each(key::CONTAINER_CPUS, |one| of_said(one.given.cpus.clone(), name, "the number of CPUs"));
    for (detail, key, what) in Detail::ALL {
        insert.each(*key, |one| one.given.detail(*detail, name, what));
    }
    insert.each(key::CONTAINER_MOUNTS, |one| mounts(&one.given, name));
    insert.each(key::CONTAINER_RANKS, |one| of_said(processes(one), name, "the number of processes"));
    insert.each(key::CONTAINER_NODES, |one| nodes(one, name));
    facts.insert(key::CONTAINER_OTHER_IMAGES, other_images(file));
    facts.insert(key::CONTAINER_HIDDEN, hidden(containers, name, facts));
    doubt_modules(containers, facts);
    facts.insert(key::CONTAINER_COLLIDING_PORTS, colliding_ports(file));
    settings::add(file, containers, facts);
}

struct Inserter<'a> {
    file: &'a str,
    containers: &'a [LaunchContainer],
    facts: &'a mut Facts,
}

impl Inserter<'_> {
    /// Inserts a fact of which each container has one.
    fn each<T: FactType + PartialEq>(&mut self, key: Key<T>, of: impl Fn(&LaunchContainer) -> Fact<T>) {
        let mut all = self.containers.iter().map(of);
        let first = all.next().unwrap_or(Fact::Absent);
        // A value that is known beside one that is not differs from it, too.
        let known = |fact: &Fact<T>| !matches!(fact, Fact::Unknown(_));
        let differs = all.any(|other| other.value() != first.value() || known(&other) != known(&first));
        let fact = if differs {
            Fact::Unknown(
                Gap::new(format!("{} gives its containers different values", self.file))
                    .settled_by(format!("judge each of them: ncclcheck check --launch {}", self.file)),
            )
        } else {
            first
        };
        self.facts.insert(key, fact);
    }
}

/// True if a container runs PyTorch: its image has it, or a launcher or a setting shows it.
fn shows_torch(container: &LaunchContainer, facts: &Facts) -> bool {
    let settings = facts.certain(&key::ENV_EFFECTIVE).value();
    facts.get(key::TORCH_PATH).value().is_some()
        || of_command(container).is_some()
        || matches!(settings, Some(Value::Map(settings)) if !settings.is_empty())
}

fn of_said(said: Option<Said<i64>>, file: &str, what: &str) -> Fact<i64> {
    said.map_or(Fact::Absent, |said| said.fact(file, what))
}

fn of_command(container: &LaunchContainer) -> Option<Ranks> {
    let words: Vec<String> = container.entrypoint.iter().chain(&container.arguments).flatten().cloned().collect();
    ranks::of_command(&words, container.line)
}

/// The processes on each node: of a launcher, or of a scheduler that starts them itself. A single task may be a script with a
/// launcher.
fn processes(container: &LaunchContainer) -> Option<Said<i64>> {
    let tasks = || container.given.tasks.clone().filter(|tasks| tasks.value != Some(1));
    of_command(container).map_or_else(tasks, |ranks| ranks.processes)
}

/// The number of nodes: what the launcher is told, or how many copies of the container the file starts.
fn nodes(container: &LaunchContainer, file: &str) -> Fact<i64> {
    let given = &container.given;
    let said = of_command(container).and_then(|ranks| ranks.nodes).or_else(|| given.nodes.clone());
    of_said(said.or_else(|| given.copies.clone()), file, "the number of nodes")
}

fn mounts(given: &Given, file: &str) -> Fact<Vec<String>> {
    let mut list = SettingList::default();
    for said in &given.mounts {
        said.value.iter().for_each(|mount| list.push(mount.clone(), [site(file, said.line, "mounts")]));
    }
    list.fact(None)
}

/// The libraries of the image over which a container mounts a folder or a file.
fn hidden(containers: &[LaunchContainer], file: &str, facts: &Facts) -> Fact<Vec<String>> {
    let mounts = containers.iter().flat_map(|container| &container.given.mounts);
    let mut list = SettingList::default();
    let mut gap = None;
    for (mount, line) in mounts.filter_map(|said| Some((said.value.as_deref()?, said.line))) {
        let target = mount.rsplit(':').next().unwrap_or(mount).trim_end_matches('/');
        for path in [facts.get(key::TORCH_PATH), facts.get(key::NCCL_LOADED_PATH)] {
            let hides = |path: &ImagePath| !target.is_empty() && path.starts_with(&ImagePath::from(target));
            match path {
                Fact::Seen { value: path, .. } if hides(path) => {
                    list.push(format!("{target} hides {path}"), [site(file, line, "mounts")]);
                }
                Fact::Unknown(unknown) => gap = Some(unknown),
                _ => {}
            }
        }
    }
    list.fact(gap)
}

/// Makes unknown which modules are absent where a mount brings other files into a folder that they are sought in, or another program.
fn doubt_modules(containers: &[LaunchContainer], facts: &mut Facts) {
    let Fact::Seen { value, .. } = facts.get(key::START_ABSENT_MODULES) else { return };
    let searched = facts
        .get(key::START_MODULES_SEARCHED)
        .value()
        .into_iter()
        .flatten()
        .map(|folder| ImagePath::from(folder.as_str()));
    let folders: Vec<_> = searched.collect();
    let mounts = containers.iter().flat_map(|container| &container.given.mounts);
    let covers = |target: &str| {
        let path = ImagePath::from(target);
        value.iter().any(|text| text.contains(&format!("({target}")))
            || folders.iter().any(|folder| folder.starts_with(&path) || path.starts_with(folder))
    };
    let hidden = mounts.filter_map(|said| said.value.as_deref()).find_map(|mount| {
        let target = mount.rsplit(':').next().unwrap_or(mount).trim_end_matches('/');
        covers(target).then(|| format!("the launch mounts {target}, which may have the modules"))
    });
    if let Some(why) = hidden {
        facts.insert(key::START_ABSENT_MODULES, Fact::Unknown(Gap::new(why)));
    }
}

/// Ports that commands of several services name, on the network of the host.
fn colliding_ports(file: &LaunchFile) -> Fact<Vec<String>> {
    let mut takers: BTreeMap<String, Vec<&LaunchContainer>> = BTreeMap::new();
    for container in &file.containers {
        let is_on_host = container.given.network.as_ref().and_then(|said| said.value.as_deref()) == Some("host");
        let words: Vec<&String> = container.entrypoint.iter().chain(&container.arguments).flatten().collect();
        if is_on_host && !container.is_optional && container.given.starter == Starter::Compose {
            let apart = words.windows(2).filter(|pair| pair.first().is_some_and(|option| *option == "--port"));
            let joined = words.iter().filter_map(|word| word.strip_prefix("--port="));
            let ports = apart.filter_map(|pair| pair.last().map(|port| port.as_str())).chain(joined);
            for port in ports.filter(|port| port.parse::<u16>().is_ok()) {
                takers.entry(format!("--port {port}")).or_default().push(container);
            }
        }
    }
    takers.retain(|_, containers| containers.len() > 1);
    let described = |(port, containers): (&String, &Vec<&LaunchContainer>)| {
        let names: Vec<_> = containers.iter().map(|container| container.name.as_str()).collect();
        format!("{port} of {}", names.join(" and "))
    };
    let mut list = SettingList::default();
    for taken in &takers {
        list.push(described(taken), taken.1.iter().map(|container| site(&file.name, container.line, "command")));
    }
    list.fact(None)
}

/// Images of which containers with GPUs take several tags.
fn other_images(file: &LaunchFile) -> Fact<Vec<String>> {
    let with_gpu = file.containers.iter().filter(|container| container.given.has_gpu && !container.is_optional);
    let mut images: Vec<(&str, usize)> = with_gpu.filter_map(|one| Some((one.image.as_deref()?, one.line))).collect();
    images.sort_unstable();
    images.dedup_by_key(|(image, _)| *image);
    let repository = |image: &str| {
        let name = image.split('@').next().unwrap_or(image);
        let end = name.rfind(':').filter(|colon| !name.get(*colon..).unwrap_or_default().contains('/'));
        name.get(..end.unwrap_or(name.len())).unwrap_or(name).to_owned()
    };
    let is_shared = |image: &&(&str, usize)| {
        let same = images.iter().filter(|(other, _)| repository(other) == repository(image.0));
        same.count() > 1
    };
    let mut list = SettingList::default();
    for (image, line) in images.iter().filter(is_shared) {
        list.push((*image).to_owned(), [site(&file.name, *line, "image")]);
    }
    list.fact(None)
}
