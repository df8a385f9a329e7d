//! Random trees of files around a copy of an interpreter.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::start::{PythonFlags, PythonTarget};
use model::ImagePath;

use super::PathTrial;

/// Random numbers that a seed determines (Marsaglia, "Xorshift RNGs").
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % limit
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }
}

/// A tree of files.
pub(super) struct PythonTree {
    root: tempfile::TempDir,
    /// Directory name of the version, such as `python3.11`.
    version: String,
    minor: u32,
    programs: Vec<PathBuf>,
}

/// Prints the path; the standard library has it too, as a module.
const SHOW: &str = "import sys\nprint('\\n'.join(sys.path))\n";

impl PythonTree {
    /// Copies an interpreter, and makes random environments around it.
    pub(super) fn build(python: &str, random: &mut Random) -> Self {
        let ask = "import os, sys; print(os.path.realpath(sys.executable)); print(os.path.dirname(os.__file__)); \
                   print(*sys.version_info[:2], sep='.')";
        let output = Command::new(python).args(["-I", "-c", ask]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let [program, library, number] = text.lines().collect::<Vec<_>>().try_into().unwrap();
        let minor = number.split('.').next_back().unwrap().parse().unwrap();
        let root = tempfile::tempdir().unwrap();
        let mut tree = Self { root, version: format!("python{number}"), minor, programs: Vec::new() };
        tree.install(Path::new(program), Path::new(library));
        for number in 0..4 {
            tree.environment(random, number);
        }
        for (home, percent) in [("home/a", 90), ("home/b", 30), ("base", 80)] {
            let folder = if home == "base" { home.to_owned() } else { format!("{home}/.local") };
            let folder = format!("{folder}/lib/{}/site-packages", tree.version);
            tree.packages(random, &folder, percent);
        }
        tree.packages(random, "usr/lib/python3/dist-packages", 70);
        tree.packages(random, &format!("usr/local/lib/{}/dist-packages", tree.version), 70);
        tree.packages(random, &format!("usr/lib/{}/site-packages", tree.version), 70);
        tree.packages(random, "opt/added/site-packages", 100);
        for folder in ["x0", "x1/sub", "work/sub", "app"] {
            fs::create_dir_all(tree.at(folder)).unwrap();
        }
        for file in ["work/s.py", "work/sub/s.py", "app/__main__.py", "x0/s.py"] {
            tree.write(file, SHOW);
        }
        symlink("../work/s.py", tree.at("x1/link.py")).unwrap();
        symlink("x1", tree.at("linked")).unwrap();
        symlink("usr/bin", tree.at("bin")).unwrap();
        tree
    }

    pub(super) fn root(&self) -> &Path {
        self.root.path()
    }

    /// The small files, with their content.
    pub(super) fn listing(&self) -> String {
        let mut command = Command::new("sh");
        let find = "find . \\( -name '*.pth' -o -name pyvenv.cfg -o -name '*._pth' -o -name sitecustomize.py \\) -exec \
                    sh -c 'echo \"== $1\"; cat \"$1\"' x {} \\; ; ls -l opt/*/bin";
        String::from_utf8(command.args(["-c", find]).current_dir(self.root()).output().unwrap().stdout).unwrap()
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    fn text(&self, path: &str) -> String {
        self.at(path).to_str().unwrap().to_owned()
    }

    fn write(&self, path: &str, content: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), content).unwrap();
    }

    /// The interpreter with the part of its library that starts it.
    fn install(&mut self, program: &Path, library: &Path) {
        let own = format!("usr/bin/{}", self.version);
        let standard = format!("usr/lib/{}", self.version);
        for folder in ["usr/bin", &format!("{standard}/lib-dynload")] {
            fs::create_dir_all(self.at(folder)).unwrap();
        }
        fs::copy(program, self.at(&own)).unwrap();
        symlink(&self.version, self.at("usr/bin/python3")).unwrap();
        copy_sources(library, &self.at(&standard));
        for folder in ["encodings", "collections", "importlib", "re"] {
            if library.join(folder).is_dir() {
                copy_sources(&library.join(folder), &self.at(&format!("{standard}/{folder}")));
            }
        }
        self.write(&format!("{standard}/showpath.py"), SHOW);
        self.programs = ["usr/bin/python3", &own, "bin/python3"].map(|path| self.at(path)).into();
    }

    /// An environment that is marked in some way, and whose program is some link or a copy.
    fn environment(&mut self, random: &mut Random, number: usize) {
        let place = format!("opt/v{number}");
        let bin = format!("{place}/bin");
        fs::create_dir_all(self.at(&bin)).unwrap();
        let program = format!("{bin}/python");
        match random.below(5) {
            0 => _ = fs::copy(self.at("usr/bin/python3"), self.at(&program)).unwrap(),
            1 if number > 0 => symlink(format!("../../v{}/bin/python", number - 1), self.at(&program)).unwrap(),
            2 => symlink(self.text(&format!("usr/bin/{}", self.version)), self.at(&program)).unwrap(),
            _ => symlink("../../../usr/bin/python3", self.at(&program)).unwrap(),
        }
        let sees = random.pick(&[
            "include-system-site-packages = false\n",
            "include-system-site-packages = true\n",
            "Include-System-Site-Packages=TRUE\n",
            "include-system-site-packages = no\ninclude-system-site-packages = true\n",
            "",
        ]);
        let folder = self.text("usr/bin");
        let other = self.text(&format!("opt/v{}/bin", number.saturating_sub(1)));
        let home = random.pick(&[
            format!("home = {folder}\n"),
            format!("home = {folder}\n"),
            format!("HOME={folder}\n"),
            format!("home = {other}\n"),
            "home = ../usr/bin\n".to_owned(),
            String::new(),
        ]);
        let marks: &[String] = match random.below(8) {
            0 => &[],
            1 => &[format!("{bin}/pyvenv.cfg")],
            2 => &[format!("{bin}/pyvenv.cfg"), format!("{place}/pyvenv.cfg")],
            _ => &[format!("{place}/pyvenv.cfg")],
        };
        for mark in marks {
            self.write(mark, &format!("{home}{sees}version = 3\n"));
        }
        self.packages(random, &format!("{place}/lib/{}/site-packages", self.version), 90);
        self.packages(random, &format!("{place}/local/lib/{}/dist-packages", self.version), 20);
        self.packages(random, &format!("{place}/lib/{}/dist-packages", self.version), 20);
        if random.chance(10) {
            let lines = format!("{folder}/../lib/{}\n# a comment\n../x0 # here\n\nimport site\n", self.version);
            self.write(&format!("{program}._pth"), &lines);
        }
        self.programs.push(self.at(&program));
    }

    /// A directory of packages, with files that add to the path.
    fn packages(&self, random: &mut Random, folder: &str, percent: usize) {
        if !random.chance(percent) {
            return;
        }
        fs::create_dir_all(self.at(folder).join("own")).unwrap();
        for name in ["b.pth", "a.pth", ".hidden.pth", "c.txt"] {
            if random.chance(45) {
                let lines: String = (0..random.below(5)).map(|_| self.line(random) + "\n").collect();
                self.write(&format!("{folder}/{name}"), &lines);
            }
        }
        if random.chance(15) {
            let code = format!("# code\nimport sys\nsys.path.insert(0, '{}')\n", self.text("x1"));
            self.write(&format!("{folder}/sitecustomize.py"), &code);
        }
    }

    fn line(&self, random: &mut Random) -> String {
        let [x0, x1, added, missing] = ["x0", "x1", "opt/added/site-packages", "none"].map(|path| self.text(path));
        random.pick(&[
            x0.clone(),
            format!("{x1}  "),
            format!("{x1}/../x0/"),
            missing.clone(),
            "own".to_owned(),
            "./own/.".to_owned(),
            "# own".to_owned(),
            String::new(),
            self.text("work/s.py"),
            format!("import sys; sys.path.insert(0, '{x0}')"),
            format!("import sys; sys.path.insert(1, '{missing}')"),
            format!("import sys; sys.path.insert(-1, '{x0}')"),
            format!("import os, sys; sys.path.append(os.path.join('{x1}', 'sub'))"),
            format!("import sys; sys.path += ['{x1}']"),
            format!("import sys; sys.path[0:0] = ['{x0}', '{x1}']"),
            format!("import site; site.addsitedir('{added}')"),
            "import sys, os; sys.path.append(os.path.join(sitedir, 'own'))".to_owned(),
            "import sys; sys.path.append(sys.prefix)".to_owned(),
            format!("import sys; sys.path.remove('{x0}')"),
            "import _virtualenv".to_owned(),
            "import sys; sys.__plen = len(sys.path)".to_owned(),
            "import sys; new=sys.path[sys.__plen:]; del sys.path[sys.__plen:]; p=getattr(sys,'__egginsert',0); \
             sys.path[p:p]=new; sys.__egginsert = p+len(new)"
                .to_owned(),
        ])
    }

    /// A random call.
    pub(super) fn trial(&self, random: &mut Random) -> PathTrial {
        let directory = self.at(random.pick(&["work", "work/sub", "linked", "."])).canonicalize().unwrap();
        let mut variables = BTreeMap::new();
        let mut set = |random: &mut Random, percent, name: &str, values: &[String]| {
            if random.chance(percent) {
                variables.insert(name.to_owned(), random.pick(values));
            }
        };
        let texts = |paths: &[&str]| paths.iter().map(|path| self.text(path)).collect::<Vec<_>>();
        set(random, 80, "HOME", &texts(&["home/a", "home/b", "home/none"]));
        let words = [self.text("x0"), self.text("none"), self.text("x1/../x0"), self.text("linked/sub")];
        let words: Vec<_> = words.into_iter().chain(["", ".", "sub", "..", ""].map(ToOwned::to_owned)).collect();
        let lists: Vec<_> = (0..4).map(|count| (0..=count).map(|_| random.pick(&words)).collect::<Vec<_>>()).collect();
        set(random, 60, "PYTHONPATH", &lists.iter().map(|list| list.join(":")).collect::<Vec<_>>());
        let usr = self.text("usr");
        set(random, 8, "PYTHONHOME", &[usr.clone(), format!("{usr}:{usr}")]);
        set(random, 15, "PYTHONNOUSERSITE", &["1".to_owned(), String::new()]);
        set(random, 15, "PYTHONSAFEPATH", &["1".to_owned(), String::new()]);
        set(random, 20, "PYTHONUSERBASE", &[self.text("base"), "../base".to_owned(), String::new()]);
        set(random, 10, "VIRTUAL_ENV", &texts(&["opt/v1"]));
        set(random, 5, "PYTHONPLATLIBDIR", &["lib".to_owned()]);
        let flags = PythonFlags {
            isolated: random.chance(10),
            ignores_environment: random.chance(10),
            no_user_site: random.chance(15),
            no_site: random.chance(15),
            safe_path: self.minor >= 11 && random.chance(15),
        };
        let script = |path: PathBuf| {
            let target = PythonTarget::Script(ImagePath::from(path.to_str().unwrap()));
            (target, vec![path.to_str().unwrap().to_owned()])
        };
        let (target, arguments) = match random.below(5) {
            0 => (PythonTarget::Code, vec!["-c".to_owned(), SHOW.to_owned()]),
            1 => (PythonTarget::Module("showpath".to_owned()), vec!["-m".to_owned(), "showpath".to_owned()]),
            2 => script(self.at("app")),
            _ => script(self.at(random.pick(&["work/s.py", "x1/link.py", "work/sub/s.py", "linked/link.py"]))),
        };
        let program = random.pick(&self.programs);
        PathTrial { program, directory, variables, flags, target, arguments }
    }
}

fn copy_sources(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap();
        // Debian's file is a link to one that this machine may change.
        if path.is_file() && path.extension().is_some_and(|suffix| suffix == "py") && name != "sitecustomize.py" {
            fs::copy(&path, to.join(name)).unwrap();
        }
    }
}
