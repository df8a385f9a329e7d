//! Maps sites in an image to the Dockerfile lines that made them.

mod change;
mod evidence;
mod words;

use parse_dockerfile::{Command, Instruction, Source, Span, Stage, UnescapedString};

use change::line_end;
use words::EnvPair;

pub use change::{CONTEXT, ChangeRefusal, DockerfileChanges, unified};
pub use evidence::DockerfileMismatch;

use super::history::tidy_with;
use model::{ImageSummary, Site, conceal};

/// A parsed Dockerfile, reduced to the last stage and the stages it is built on.
#[derive(Clone, Debug)]
pub struct Dockerfile {
    /// Path relative to the repository.
    path: String,
    text: String,
    escape: char,
    steps: Vec<DockerfileStep>,
    /// Defaults of build arguments, in all stages.
    arguments: Vec<EnvPair>,
    /// Shells from `SHELL` instructions, as they prefix a command in the history of an image.
    shells: Vec<String>,
    /// All named stages with the offset behind their last instruction.
    stages: Vec<(String, usize)>,
    /// Offset behind the `FROM` of the last stage.
    beginning: usize,
    /// Offsets of the ends of lines.
    newlines: Vec<usize>,
}

/// One instruction.
#[derive(Clone, Debug)]
struct DockerfileStep {
    line: usize,
    /// Offset of the keyword.
    start: usize,
    /// Offset behind the last line.
    end: usize,
    /// The instruction on one line, without its options.
    text: String,
    /// True for a here-document, of which `text` is only the beginning.
    is_open: bool,
    /// Assignments of an `ENV`.
    variables: Vec<EnvPair>,
    /// Index of its stage.
    stage: usize,
    /// The stage or image that a `COPY` takes files from, if not the build's context.
    copied_from: Option<String>,
}

impl Dockerfile {
    /// Parses a Dockerfile. The error names the line.
    pub fn parse(path: String, text: &str) -> Result<Self, String> {
        let dockerfile = parse_dockerfile::parse(text).map_err(|error| refusal(text, &error))?;
        let escape = dockerfile.parser_directives.escape.as_ref().map_or('\\', |directive| directive.value.value);
        let stages: Vec<_> = dockerfile.stages().collect();
        let reader = Reader {
            text,
            escape,
            ends: ends(text, &dockerfile.instructions),
            newlines: text.match_indices('\n').map(|(at, _)| at).collect(),
        };
        let chain = chain(&stages);
        let instructions = || chain.iter().flat_map(|stage| stage.instructions);
        let steps = chain.iter().enumerate().flat_map(|(stage, part)| {
            let steps = part.instructions.iter().filter_map(|instruction| reader.step(instruction));
            steps.map(move |step| DockerfileStep { stage, ..step })
        });
        let steps = steps.collect();
        let arguments = dockerfile.instructions.iter().filter_map(|instruction| match instruction {
            Instruction::Arg(arg) => Some(reader.assignments(&arg.arguments.span)),
            _ => None,
        });
        let arguments = arguments.flatten().collect();
        let shells = instructions().filter_map(|instruction| match instruction {
            Instruction::Shell(shell) => Some(format!("{} ", joined(&shell.arguments))),
            _ => None,
        });
        let named = stages.iter().filter_map(|stage| {
            let (_, name) = stage.from.as_.as_ref()?;
            let last = stage.instructions.last().map_or(stage.from.from.span.start, start);
            Some((name.value.to_string(), reader.end(last)))
        });
        let beginning = stages.last().map_or(text.len(), |stage| reader.end(stage.from.from.span.start));
        let stages = named.collect();
        let shells = shells.collect();
        let newlines = reader.newlines;
        Ok(Self { path, text: text.to_owned(), escape, steps, arguments, shells, stages, beginning, newlines })
    }

    /// The path relative to the repository.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The text as it was read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same as [`line`](Self::line), as `Dockerfile:4`.
    pub fn place(&self, site: &Site, image: &ImageSummary) -> Option<String> {
        self.line(site, image).map(|line| format!("{}:{line}", self.path))
    }

    /// The line of the instruction that made a site of the image; `None` for what the base image contains.
    pub fn line(&self, site: &Site, image: &ImageSummary) -> Option<usize> {
        match site {
            Site::File { layer, .. } => self.made(*layer, image),
            Site::Config(key) => self.line_of(key),
            Site::Probe(_) | Site::Launch { .. } | Site::Log { .. } => None,
        }
    }

    /// The line that last sets a key of the configuration.
    fn line_of(&self, key: &str) -> Option<usize> {
        let instruction = match key {
            "User" => "USER ",
            "Entrypoint" => "ENTRYPOINT ",
            "Cmd" => "CMD ",
            "WorkingDir" => "WORKDIR ",
            "Labels" => "LABEL ",
            _ => {
                let name = key.strip_prefix("Env ")?;
                return self.value(name).map(|(_, line)| line);
            }
        };
        let mut latest = self.steps.iter().rev();
        latest.find(|step| step.text.starts_with(instruction)).map(|step| step.line)
    }

    /// The line of the instruction that made a layer. Identical instructions are matched with identical history entries,
    /// starting with the last instruction and the uppermost layer, because the base image may contain more of them.
    fn made(&self, layer: usize, image: &ImageSummary) -> Option<usize> {
        let history = |layer: usize| {
            let history = image.layers.get(layer)?.history.as_ref()?;
            Some(without_options(&conceal(&tidy_with(history, &self.shells))))
        };
        let wanted = history(layer)?;
        let above = (layer + 1..image.layers.len()).filter(|above| history(*above).as_ref() == Some(&wanted)).count();
        self.steps.iter().rev().filter(|step| step.made(&wanted)).nth(above).map(|step| step.line)
    }
}

impl DockerfileStep {
    fn made(&self, history: &str) -> bool {
        if self.is_open { history.starts_with(&self.text) } else { self.text == history || self.copied(history) }
    }

    /// The classic builder records the digest of the copied files and the target: `COPY file:0f1e2d in /app `.
    fn copied(&self, history: &str) -> bool {
        let Some((source, target)) = history.split_once(" in ") else { return false };
        let mut words = self.text.split(' ');
        let instruction = words.next();
        let last = words.next_back();
        source.split_once(' ').is_some_and(|(name, digest)| {
            instruction == Some(name) && ["file:", "dir:", "multi:"].iter().any(|kind| digest.starts_with(kind))
        }) && last == Some(target.trim())
    }
}

/// The last stage and the stages it is built on, lowest first.
fn chain<'a, 'b>(stages: &'b [Stage<'a, 'b>]) -> Vec<&'b Stage<'a, 'b>> {
    let mut chain: Vec<&Stage<'_, '_>> = Vec::new();
    let mut rest = stages;
    while let Some((last, before)) = rest.split_last() {
        let is_base = |base: &Stage<'_, '_>| {
            let name = last.from.as_.as_ref().map(|(_, name)| &name.value);
            name.is_some_and(|name| name.eq_ignore_ascii_case(&base.from.image.value))
        };
        if chain.last().is_none_or(|above| is_base(above)) {
            chain.push(last);
        }
        rest = before;
    }
    chain.reverse();
    chain
}

struct Reader<'t> {
    text: &'t str,
    escape: char,
    /// Offset behind the last line of each instruction, ascending.
    ends: Vec<usize>,
    /// Offset of each newline, ascending.
    newlines: Vec<usize>,
}

impl Reader<'_> {
    /// The history entry that an instruction leaves in the image.
    fn step(&self, instruction: &Instruction<'_>) -> Option<DockerfileStep> {
        let step = |keyword: &Span, text: String| DockerfileStep {
            line: self.line(keyword.start),
            start: keyword.start,
            end: self.end(keyword.start),
            text: conceal(&text).into_owned(),
            is_open: false,
            variables: Vec::new(),
            stage: 0,
            copied_from: None,
        };
        Some(match instruction {
            Instruction::Run(run) => match run.here_docs.last() {
                None => step(&run.run.span, format!("RUN {}", self.command(&run.arguments))),
                // Here-documents go into the history verbatim.
                Some(last) => {
                    let words = self.raw(&(run.run.span.end..last.span.end)).split_whitespace();
                    let words = words.skip_while(|word| word.starts_with("--"));
                    let text = std::iter::once("RUN").chain(words).collect::<Vec<_>>().join(" ");
                    DockerfileStep { is_open: true, ..step(&run.run.span, text) }
                }
            },
            Instruction::Copy(copy) => DockerfileStep {
                copied_from: copy
                    .options
                    .iter()
                    .find(|option| option.name.value == "from")
                    .and_then(|option| option.value.as_ref())
                    .map(|stage| stage.value.to_string()),
                ..step(&copy.copy.span, copied("COPY", &copy.src, &copy.dest))
            },
            Instruction::Add(add) => step(&add.add.span, copied("ADD", &add.src, &add.dest)),
            Instruction::Env(env) => DockerfileStep {
                variables: self.assignments(&env.arguments.span),
                ..step(&env.env.span, "ENV".to_owned())
            },
            Instruction::Workdir(set) => step(&set.workdir.span, format!("WORKDIR {}", set.arguments.value)),
            Instruction::User(set) => step(&set.user.span, format!("USER {}", set.arguments.value)),
            Instruction::Entrypoint(set) => {
                step(&set.entrypoint.span, format!("ENTRYPOINT {}", self.command(&set.arguments)))
            }
            Instruction::Cmd(set) => step(&set.cmd.span, format!("CMD {}", self.command(&set.arguments))),
            Instruction::Label(set) => step(&set.label.span, format!("LABEL {}", set.arguments.value)),
            _ => return None,
        })
    }

    /// The assignments that are written in a part of the text.
    fn assignments(&self, span: &Span) -> Vec<EnvPair> {
        let placed = |pair: EnvPair| EnvPair { span: pair.span.start + span.start..pair.span.end + span.start, ..pair };
        words::pairs(self.raw(span), self.escape).into_iter().map(placed).collect()
    }

    fn command(&self, command: &Command<'_>) -> String {
        match command {
            Command::Exec(words) => joined(&words.value),
            Command::Shell(shell) => words::collapse(self.raw(&shell.span), self.escape),
            _ => String::new(),
        }
    }

    fn raw(&self, span: &Span) -> &str {
        self.text.get(span.clone()).unwrap_or_default()
    }

    /// The offset behind the last line of the instruction at an offset.
    fn end(&self, offset: usize) -> usize {
        let at = self.ends.partition_point(|end| *end <= offset);
        self.ends.get(at).copied().unwrap_or(self.text.len())
    }

    fn line(&self, offset: usize) -> usize {
        1 + self.newlines.partition_point(|newline| *newline < offset)
    }
}

/// Describes why a text is no Dockerfile. Only one that begins as a Dockerfile is quoted, and of it only a word: the path
/// may lead to a file that holds secrets.
fn refusal(text: &str, error: &parse_dockerfile::Error) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let first = lines.next().and_then(|line| line.split_once(' ')).map(|(first, _)| first);
    let is_dockerfile = first.is_some_and(|word| ["FROM", "ARG"].iter().any(|begin| word.eq_ignore_ascii_case(begin)));
    let said = format!("{error:#}");
    let is_word = |word: &str| word.len() <= 16 && word.bytes().all(|byte| byte.is_ascii_alphabetic());
    let what = match said.split_once('\'') {
        None => said,
        Some((before, after)) if is_dockerfile && after.split('\'').next().is_some_and(is_word) => {
            format!("{before}'{after}")
        }
        Some((before, _)) => before.trim_end().to_owned(),
    };
    let what = if is_dockerfile || error.line() == 0 { what } else { "expected a FROM instruction".to_owned() };
    if error.line() == 0 { what } else { format!("{what} at line {} column {}", error.line(), error.column()) }
}

/// The offset of an instruction's keyword.
fn start(instruction: &Instruction<'_>) -> usize {
    match instruction {
        Instruction::Add(add) => add.add.span.start,
        Instruction::Arg(arg) => arg.arg.span.start,
        Instruction::Cmd(set) => set.cmd.span.start,
        Instruction::Copy(copy) => copy.copy.span.start,
        Instruction::Entrypoint(set) => set.entrypoint.span.start,
        Instruction::Env(env) => env.env.span.start,
        Instruction::Expose(set) => set.expose.span.start,
        Instruction::From(from) => from.from.span.start,
        Instruction::Healthcheck(set) => set.healthcheck.span.start,
        Instruction::Label(set) => set.label.span.start,
        Instruction::Maintainer(set) => set.maintainer.span.start,
        Instruction::Onbuild(later) => later.onbuild.span.start,
        Instruction::Run(run) => run.run.span.start,
        Instruction::Shell(set) => set.shell.span.start,
        Instruction::Stopsignal(set) => set.stopsignal.span.start,
        Instruction::User(set) => set.user.span.start,
        Instruction::Volume(set) => set.volume.span.start,
        Instruction::Workdir(set) => set.workdir.span.start,
        _ => 0,
    }
}

/// The offset behind the last line of each instruction: what follows are empty lines, comments and the next instruction.
fn ends(text: &str, instructions: &[Instruction<'_>]) -> Vec<usize> {
    let starts: Vec<_> = instructions.iter().map(start).collect();
    let bounds = starts.iter().skip(1).copied().chain([text.len()]);
    let end = |(start, bound): (&usize, usize)| {
        let lines = text.get(*start..bound).unwrap_or_default().split_inclusive('\n');
        let mut end = line_end(text, *start);
        let mut offset = *start;
        for line in lines {
            offset += line.len();
            let content = line.trim();
            if !content.is_empty() && !content.starts_with('#') {
                end = offset;
            }
        }
        end
    };
    starts.iter().zip(bounds).map(end).collect()
}

fn copied(instruction: &str, sources: &[Source<'_>], target: &UnescapedString<'_>) -> String {
    let sources = sources.iter().filter_map(|source| match source {
        Source::Path(path) => Some(&*path.value),
        _ => None,
    });
    std::iter::once(instruction).chain(sources).chain([&*target.value]).collect::<Vec<_>>().join(" ")
}

fn joined(words: &[UnescapedString<'_>]) -> String {
    words.iter().map(|word| &*word.value).collect::<Vec<_>>().join(" ")
}

/// A history step without the options of `COPY` and `ADD`, which builders record inconsistently.
fn without_options(step: &str) -> String {
    let mut words = step.split(' ').peekable();
    let Some(first) = words.next_if(|word| matches!(*word, "COPY" | "ADD")) else { return step.trim().to_owned() };
    let rest = words.skip_while(|word| word.starts_with("--"));
    std::iter::once(first).chain(rest).collect::<Vec<_>>().join(" ").trim().to_owned()
}

#[cfg(test)]
mod tests;
