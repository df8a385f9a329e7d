//! The launch of a job: its files, and the variables that options set over them.

use model::{Gap, StartCommand, StartUser};

use super::container::{choose, choose_user, meant};
use super::given::is_computed;
use super::{LaunchContainer, LaunchFile, Setting};

/// What the launch files of a job and the options of the command line set and start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launched {
    /// The files, of which the last counts.
    pub files: Vec<LaunchFile>,
    /// Variables of options, which count before those of files.
    pub options: Vec<Setting>,
}

impl Launched {
    /// The variables that the containers of an image get. The last setting of a variable counts.
    pub fn settings(&self, reference: &str) -> Vec<Setting> {
        self.chosen(|file| meant(&file.containers, reference))
    }

    /// The variables that any container gets.
    pub fn all_settings(&self) -> Vec<Setting> {
        self.chosen(|file| file.containers.iter().collect())
    }

    fn chosen<'f>(&'f self, containers: impl Fn(&'f LaunchFile) -> Vec<&'f LaunchContainer>) -> Vec<Setting> {
        let mut all: Vec<Setting> = Vec::new();
        for file in &self.files {
            let own = containers(file).into_iter().flat_map(|container| &container.settings);
            for setting in file.settings.iter().chain(own) {
                if !all.contains(setting) {
                    all.push(setting.clone());
                }
            }
        }
        all.extend(self.options.iter().cloned());
        all
    }

    /// The command that the files give the containers of an image; the last file that gives one counts.
    pub fn command(&self, reference: &str) -> Option<Result<StartCommand, Gap>> {
        self.files.iter().rev().find_map(|file| choose(file, reference))
    }

    /// The user that the files give the containers of an image; the last file that gives one counts.
    pub fn user(&self, reference: &str) -> Option<Result<StartUser, Gap>> {
        self.files.iter().rev().find_map(|file| choose_user(file, reference))
    }

    /// The images that the files name, each with the file: those of containers with GPUs, if any container has one. A name that
    /// is computed when the job starts, or left empty, is left out.
    pub fn images(&self) -> Vec<(&str, String)> {
        let mut images: Vec<(&str, String)> = Vec::new();
        for file in &self.files {
            for container in meant(&file.containers, "") {
                let is_named = |image: &&str| !image.is_empty() && !is_computed(image);
                let Some(image) = container.image.as_deref().filter(is_named) else { continue };
                // Enroot separates the registry by a number sign.
                let image = image.replacen('#', "/", 1);
                if !images.iter().any(|(_, other)| *other == image) {
                    images.push((&file.name, image));
                }
            }
        }
        images
    }

    /// The containers of each file that run an image, or may run a job where the reference is empty: the indices of the file
    /// and of the containers in it. A file that starts no container is among them.
    pub fn places(&self, reference: &str) -> Vec<(usize, Vec<usize>)> {
        let of_file = |file: &LaunchFile| {
            let meant = meant(&file.containers, reference);
            let indices = file.containers.iter().enumerate();
            let indices = indices.filter(|(_, own)| meant.iter().any(|one| std::ptr::eq(*one, *own)));
            indices.map(|(index, _)| index).collect()
        };
        self.files.iter().map(of_file).enumerate().collect()
    }

    /// The containers of each file that may run a job, of which those that get the same are one group. A file that starts no
    /// container has one group without any.
    pub fn groups(&self) -> Vec<(&LaunchFile, Vec<LaunchContainer>)> {
        let mut groups: Vec<(&LaunchFile, Vec<LaunchContainer>)> = Vec::new();
        for file in &self.files {
            if file.containers.is_empty() {
                groups.push((file, Vec::new()));
            }
            for container in meant(&file.containers, "") {
                let is_alike = |(other, group): &&mut (&LaunchFile, Vec<LaunchContainer>)| {
                    std::ptr::eq(*other, file) && group.first().is_some_and(|first| container.is_like(first))
                };
                match groups.iter_mut().find(is_alike) {
                    Some((_, group)) => group.push(container.clone()),
                    None => groups.push((file, vec![container.clone()])),
                }
            }
        }
        groups
    }
}
