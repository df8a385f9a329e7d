use std::sync::Arc;

use crate::tests::synthetic::{file, layer, text_or_link};
use layer::scan::LayerScan;
use model::{ElfInfo, Endian, Entry, EntryKind, FileOwner, Found, Limits, StartChoice, StartCommand, StartUser};

use super::super::{FactInputs, Facts, key};
use super::*;

/// An image of programs (`elf`), symbolic links (`-> TARGET`), folders (`/`) and scripts.
pub(super) fn image(files: &[(&str, &str)]) -> RootFs {
    RootFs::fold(vec![Arc::new(base_layer(files))], &Limits::default())
}

fn base_layer(files: &[(&str, &str)]) -> LayerScan {
    const BASE: &[(&str, &str)] = &[
        ("usr/bin/dash", "elf"),
        ("usr/bin/bash", "elf"),
        ("bin", "-> usr/bin"),
        ("usr/bin/sh", "-> dash"),
        ("usr/bin/env", "elf"),
        ("usr/bin/python3", "-> python3.11"),
        ("usr/bin/python3.11", "elf"),
        ("etc/passwd", "root:x:0:0::/root:/bin/bash\nuser:x:1000:1000::/home/user:/bin/sh\n"),
    ];
    layer(BASE.iter().chain(files).map(|(path, content)| match *content {
        "elf" => (file(path), vec![Ok(Found::Elf(Box::new(ElfInfo::bare(64, Endian::Little, 62))))]),
        "/" => (Entry { kind: EntryKind::Directory, size: 0, ..file(path) }, Vec::new()),
        content => text_or_link(path, content),
    }))
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

pub(super) fn config(environment: &[(&str, &str)], entrypoint: &[&str], command: &[&str]) -> ImageConfig {
    ImageConfig {
        environment: environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        entrypoint: words(entrypoint),
        command: words(command),
        working_directory: "/app".to_owned(),
        ..ImageConfig::default()
    }
}

/// The call as `PROGRAM TARGET`, or why it is unknown.
fn called(files: &[(&str, &str)], config: &ImageConfig) -> String {
    let start = ImageStart::of(&image(files), Some(config));
    if let Some(gap) = start.gap {
        return format!("unknown: {}", gap.why);
    }
    if let Some(fault) = start.fault {
        return format!("fails: {}", fault.message);
    }
    let Some(call) = start.call else { return "none".to_owned() };
    let target = match call.target {
        call::PythonTarget::Unstated => "assumed".to_owned(),
        call::PythonTarget::Script(path) => path.to_string(),
        call::PythonTarget::Module(name) => format!("-m {name}"),
        call::PythonTarget::Command(_) | call::PythonTarget::Code => "-c".to_owned(),
    };
    format!("{} {target}", call.program)
}

const VENV: &[(&str, &str)] = &[
    ("app", "/"),
    ("opt/venv/pyvenv.cfg", "home = /usr/bin\n"),
    ("opt/venv/bin/python", "-> /usr/bin/python3.11"),
    (
        "opt/venv/bin/activate",
        "VIRTUAL_ENV='/opt/venv'\nexport VIRTUAL_ENV\n_OLD=\"$PATH\"\nPATH=\"$VIRTUAL_ENV/bin:$PATH\"\nexport PATH\nif [ -n \"${BASH:-}\" -o -n \"${ZSH_VERSION:-}\" ] ; then\n  hash -r 2> /dev/null\nfi\n",
    ),
    ("opt/venv/bin/torchrun", "#!/opt/venv/bin/python\nfrom torch.distributed.run import main\n"),
    (
        "opt/venv/bin/serve",
        "#!/bin/sh\n'''exec' /opt/venv/bin/python \"$0\" \"$@\"\n' '''\nimport sys\nif x:\n    pass\n",
    ),
    ("app/env.py", "#!/usr/bin/env -S python3 -u -I\nimport torch\n"),
    ("usr/bin/tini", "elf"),
    ("usr/bin/gosu", "elf"),
    ("usr/bin/su", "elf"),
    ("usr/bin/timeout", "elf"),
    ("usr/bin/mpirun", "elf"),
    ("usr/bin/server", "elf"),
    ("usr/bin/uv", "elf"),
    ("usr/bin/sleep", "elf"),
    ("entry.sh", "#!/bin/sh\nset -e\n. /opt/venv/bin/activate\nexec \"$@\"\n"),
    (
        "fork.sh",
        "#!/bin/bash\nif [ \"$(uname -m)\" = x86_64 ]; then exec python3 a.py; else exec /opt/venv/bin/python a.py; fi\n",
    ),
    ("loop.sh", "#!/bin/bash\nfor f in $(list); do source \"$f\"; done\nexec python3 a.py\n"),
];

#[test]
fn commands_lead_to_the_python_that_runs() {
    for (entrypoint, command, expected) in [
        (&[][..], &["python3", "train.py"][..], "/usr/bin/python3 /app/train.py"),
        (&[], &["/bin/sh", "-c", "/opt/venv/bin/python train.py"], "/opt/venv/bin/python /app/train.py"),
        (
            &[],
            &["/bin/sh", "-c", "cd /opt && PATH=/opt/venv/bin:$PATH exec python train.py"],
            "/opt/venv/bin/python /opt/train.py",
        ),
        (&["/entry.sh"], &["python", "-m", "train"], "/opt/venv/bin/python -m train"),
        (
            &["tini", "--", "/entry.sh"],
            &["torchrun", "--nproc-per-node", "8", "train.py"],
            "/opt/venv/bin/python /app/train.py",
        ),
        (&["/opt/venv/bin/torchrun", "--standalone", "-m"], &["pkg.train"], "/opt/venv/bin/python -m pkg.train"),
        (&[], &["/opt/venv/bin/serve", "--port", "1"], "/opt/venv/bin/python /opt/venv/bin/serve"),
        (&[], &["/app/env.py"], "/usr/bin/python3 /app/env.py"),
        (&[], &["env", "-u", "X", "PATH=/opt/venv/bin", "python", "-c", "1"], "/opt/venv/bin/python -c"),
        (&[], &["python3.13t", "a.py"], "/usr/bin/python3.13t /app/a.py"),
        (&[], &["python3", "--check-hash-based-pycs", "always", "a.py"], "/usr/bin/python3 /app/a.py"),
        (&[], &["env", "PATH=/opt/venv/bin", "/usr/bin/env", "-vS", "python a.py"], "/opt/venv/bin/python /app/a.py"),
        (
            &[],
            &["env", "PATH=/opt/venv/bin", "/usr/bin/env", "-iS", "python a.py"],
            "fails: the image's command: python: not found",
        ),
        (&[], &["timeout", "-k", "5", "10", "python3", "-W", "ignore", "a.py"], "/usr/bin/python3 /app/a.py"),
        (&[], &["mpirun", "-np", "8", "-x", "PATH=/opt/venv/bin", "python", "a.py"], "/opt/venv/bin/python /app/a.py"),
        (&[], &["su", "-", "user", "-c", "/opt/venv/bin/python a.py"], "/opt/venv/bin/python /home/user/a.py"),
        (
            &[],
            &["server", "python"],
            "unknown: the image starts /usr/bin/server, a compiled program, which may start any Python",
        ),
        (&[], &["/fork.sh"], "unknown: /fork.sh, line 2: only a shell can determine which branch is run"),
        (&[], &["/loop.sh"], "unknown: /loop.sh, line 2: only a shell can determine the value of f"),
        (&[], &["sleep", "infinity"], "/usr/bin/python3 assumed"),
        (&[], &["bash"], "/usr/bin/python3 assumed"),
        (&["/entry.sh"], &["bash"], "/opt/venv/bin/python assumed"),
        (&[], &[], "/usr/bin/python3 assumed"),
    ] {
        let config = config(&[("PATH", "/usr/bin:/bin")], entrypoint, command);
        let mut files = VENV.to_vec();
        files.extend([("home/user", "/"), ("usr/bin/python3.13t", "elf")]);
        assert_eq!(called(&files, &config), expected, "{entrypoint:?} {command:?}");
    }
}

/// The call that a command of these words makes in an image with every program of the table.
fn wrapped(command: &str) -> String {
    let mut files = VENV.to_vec();
    let programs = "usr/bin/nsys usr/bin/py-spy usr/bin/sudo usr/bin/runuser usr/bin/setpriv usr/bin/chpst usr/bin/taskset \
        usr/bin/numactl usr/bin/nice usr/bin/flock usr/bin/srun usr/bin/strace";
    files.extend(programs.split(' ').map(|path| (path, "elf")));
    files.extend([
        ("usr/bin/accelerate", "#!/usr/bin/python3\nfrom accelerate.commands.accelerate_cli import main\n"),
        ("usr/bin/deepspeed", "#!/usr/bin/python3\nfrom deepspeed.launcher.runner import main\n"),
        ("usr/local/bin/torchrun", "#!/usr/bin/python3\nfrom torch.distributed.run import main\n"),
        ("usr/bin/coverage", "#!/usr/bin/python3\nfrom coverage.cmdline import main\n"),
        ("usr/local/bin/ray", "#!/usr/bin/python3\nfrom ray.scripts.scripts import main\n"),
        ("app/coverage", "#!/usr/bin/python3\nimport torch\n"),
    ]);
    let script = ["bash".to_owned(), "-c".to_owned(), command.to_owned()];
    called(
        &files,
        &ImageConfig { command: script.to_vec(), ..config(&[("PATH", "/usr/local/bin:/usr/bin")], &[], &[]) },
    )
}

#[test]
fn options_of_wrappers_are_told_from_the_command() {
    for command in [
        "nice -5 python3 a.py",
        "nice -n5 python3 a.py",
        "taskset -ac 0-7 python3 a.py",
        "numactl --preferred 0 -l -- python3 a.py",
        "timeout --signal=KILL -vk5 5m python3 a.py",
        "nsys profile --trace-fork-before-exec true -o x python3 a.py",
        "py-spy record -o x -r 100 -s -- python3 a.py",
        "mpirun --allow-run-as-root -np 8 --mca btl ^openib -x A=$B -bind-to none python3 a.py",
        "srun -K1 -N2 --kill-on-bad-exit python3 a.py",
        "sudo -HEu user python3 a.py",
        "runuser --user=user -- python3 a.py",
        "setpriv --reuid=1000 --clear-groups python3 a.py",
        "chpst -u user -0 python3 a.py",
        "torchrun --virtual-local-rank --nproc_per_node=$N a.py",
        "accelerate launch --downcast_bf16 --fsdp_offload_params true a.py",
        "deepspeed --elastic_training --num_gpus=8 a.py",
        "coverage run --source=. a.py",
        "python3 -m cProfile -o x a.py",
    ] {
        assert_eq!(wrapped(command), "/usr/bin/python3 /app/a.py", "{command}");
    }
}

#[test]
fn launchers_start_modules() {
    for command in [
        "torchrun --module pkg.mod",
        "python3 -m torch.distributed.launch --use_env -m pkg.mod",
        "accelerate launch --num_processes 8 --module pkg.mod",
        "python3 -m accelerate.commands.accelerate_cli launch -m pkg.mod",
        "deepspeed --module pkg.mod --deepspeed",
        "python3 -m coverage run -m pkg.mod",
        "python3 -m pdb -m pkg.mod",
    ] {
        assert_eq!(wrapped(command), "/usr/bin/python3 -m pkg.mod", "{command}");
    }
}

#[test]
fn an_option_that_the_table_lacks_makes_the_program_unknown() {
    for (command, option) in [
        ("nsys profile --frobnicate x python3 a.py", "nsys: the option --frobnicate"),
        ("timeout -vz 5 python3 a.py", "timeout: the option -z"),
        ("mpirun -np 8 -frobnicate x python3 a.py", "mpirun: the option -frobnicate"),
        ("sudo -R / python3 a.py", "sudo: the option -R"),
        ("accelerate launch --new_size 8 a.py", "accelerate: the option --new_size"),
        ("python3 -m torch.distributed.run --new=1 a.py", "torch.distributed.run: the option --new=1"),
        ("torchrun --new=$(hostname) a.py", "torchrun: the option --new="),
    ] {
        assert_eq!(wrapped(command), format!("unknown: the image's command, line 1: {option} is not known"));
    }
    let why = wrapped("flock /x -c 'python3 a.py'");
    assert_eq!(why, "unknown: the image's command, line 1: an option follows an operand");
    let why = wrapped("ray job submit -- python3 a.py");
    assert!(why.ends_with("ray starts its command on another machine or in a service"), "{why}");
    // A file of the job with the name of a launcher.
    assert_eq!(wrapped("./coverage run a.py"), "/usr/bin/python3 /app/coverage");
}

#[test]
fn a_python_that_is_told_another_name_has_the_environment_of_that_name() {
    for (command, expected) in [
        ("exec -a trainer python3 a.py", "/usr/bin/python3.11 /app/a.py"),
        ("exec -catrainer python3 a.py", "/usr/bin/python3.11 /app/a.py"),
        ("exec -l python3 a.py", "/usr/bin/python3.11 /app/a.py"),
        ("exec env -a trainer python3 a.py", "/usr/bin/python3.11 /app/a.py"),
        ("exec -a trainer /opt/venv/bin/python a.py", "/usr/bin/python3.11 /app/a.py"),
        ("PATH=/opt/venv/bin exec -a python /usr/bin/python3 a.py", "/opt/venv/bin/python /app/a.py"),
        ("exec -a x /opt/venv/bin/torchrun a.py", "/opt/venv/bin/python /app/a.py"),
    ] {
        assert_eq!(wrapped(command), expected, "{command}");
    }
    for command in ["exec -a a/b python3 a.py", "exec -a $(hostname) python3 a.py", "exec -a sh bash a.sh"] {
        let why = wrapped(command);
        assert!(why.starts_with("unknown: ") && why.contains("argv[0]"), "{command}: {why}");
    }
}

#[test]
fn supervisord_starts_the_programs_of_its_configuration() {
    let of = |conf: &str, words: &[&str]| {
        let files = [
            ("usr/bin/supervisord", "#!/usr/bin/python3\nimport supervisor\n"),
            ("usr/bin/sshd", "elf"),
            ("app/train.py", "import torch"),
            ("srv/train.py", "import torch"),
            ("etc/supervisor/supervisord.conf", conf),
            ("etc/supervisor/conf.d/train.conf", "[program:train]\ncommand = python3 /app/train.py ; text\n"),
        ];
        let config = config(&[("PATH", "/usr/bin"), ("MODE", "fast")], words, &[]);
        let start = ImageStart::of(&image(&files), Some(&config));
        let Some(call) = start.call.filter(|_| start.gap.is_none()) else { return start.gap.unwrap().why };
        let value = |name: &str| call.state.known(name).unwrap_or("-").to_owned();
        format!("{:?} in {} {} {}", call.target, call.state.directory, value("A"), value("B"))
    };
    let sshd = "[program:sshd]\ncommand=/usr/bin/sshd -D\n";
    let usual = ["supervisord", "-n"];
    for (conf, expected) in [
        (
            "[program:t]\ncommand=python3 train.py\ndirectory=/srv\nenvironment=A=\"x,y\",B=%(ENV_MODE)s\n",
            "/srv x,y fast",
        ),
        ("[supervisord]\nenvironment=A='1'\n[include]\nfiles = conf.d/*.conf\n", "/app 1 -"),
        ("[program:t]\ncommand=bash -c \"A=$MODE; export A; exec python3 /app/train.py\"\n", "/app fast -"),
        (
            "[program:t]\ncommand=python3 /app/train.py\n[program:u]\ncommand=python3 x.py\nautostart=false\n",
            "/app - -",
        ),
    ] {
        let found = of(&format!("{sshd}{conf}"), &usual);
        assert!(found.ends_with(&format!("in {expected}")) && found.contains("train.py"), "{conf}: {found}");
    }
    assert!(
        of("[program:t]\ncommand=python3 /app/train.py\nuser=a\n", &usual)
            .ends_with("supervisord starts t as another user")
    );
    assert!(
        of("[program:t]\ncommand=python3 %(process_num)d\n[program:x]\ncommand=%(x)s", &usual)
            .contains("computes a value")
    );
    assert!(of("", &["supervisord", "-c", "/none.conf"]).contains("/none.conf, which supervisord reads, was not read"));
}

#[test]
fn login_shells_read_profiles() {
    let files = [
        ("etc/profile", "for i in /etc/profile.d/*.sh; do if [ -r $i ]; then . $i; fi; done\nunset i\n"),
        ("etc/profile.d/venv.sh", "export PATH=/opt/venv/bin:$PATH NCCL_DEBUG=INFO\n"),
        ("opt/venv/bin/python", "-> /usr/bin/python3.11"),
        ("app", "/"),
    ];
    let config = config(&[("PATH", "/usr/bin")], &["bash", "-lc"], &["python a.py"]);
    let start = ImageStart::of(&image(&files), Some(&config));
    let call = start.call.unwrap();
    assert_eq!(call.program.to_string(), "/opt/venv/bin/python");
    assert_eq!(call.state.known("NCCL_DEBUG"), Some("INFO"));
    assert_eq!(call.state.origins["NCCL_DEBUG"].to_string(), "/etc/profile.d/venv.sh (line 1)");
}

#[test]
fn programs_may_change_the_user() {
    let start = |user: &str, command: &[&str]| {
        let config = ImageConfig { user: user.to_owned(), ..config(&[("PATH", "/usr/bin")], &[], command) };
        let call = ImageStart::of(&image(VENV), Some(&config)).call.unwrap();
        (call.state.user.unwrap().id, call.state.variables["HOME"].clone().unwrap())
    };
    assert_eq!(start("user", &["python3"]), (Some(1000), "/home/user".to_owned()));
    assert_eq!(start("", &["gosu", "user", "python3"]), (Some(1000), "/home/user".to_owned()));
    assert_eq!(start("", &["su", "user", "-c", "python3"]), (Some(1000), "/home/user".to_owned()));
}

#[test]
fn conda_environments_are_activated() {
    let files = [
        ("opt/conda/bin/conda", "#!/opt/conda/bin/python\nimport sys\n"),
        ("opt/conda/bin/python", "elf"),
        ("opt/conda/conda-meta/history", "#"),
        ("opt/conda/envs/t/bin/python", "elf"),
        ("opt/conda/envs/t/etc/conda/activate.d/a.sh", "export LD_LIBRARY_PATH=/opt/x\n"),
        (
            "opt/conda/etc/profile.d/conda.sh",
            "export CONDA_EXE='/opt/conda/bin/conda'\nconda() { \\local x=\"$1\"; eval \"$($CONDA_EXE \"$@\")\"; }\n",
        ),
        ("app", "/"),
    ];
    for command in [
        &["conda", "run", "--no-capture-output", "-n", "t", "python", "a.py"][..],
        &["bash", "-c", "source /opt/conda/etc/profile.d/conda.sh && conda activate t && python a.py"],
        &["bash", "-c", "eval \"$(conda shell.bash hook)\"; conda activate t; exec python a.py"],
        &[
            "bash",
            "-c",
            "PATH=/usr/bin; eval \"$(/opt/conda/bin/conda shell.bash hook)\"; conda activate t; python a.py",
        ],
    ] {
        let config = config(&[("PATH", "/opt/conda/bin:/usr/bin")], &[], command);
        assert_eq!(called(&files, &config), "/opt/conda/envs/t/bin/python /app/a.py", "{command:?}");
        let call = ImageStart::of(&image(&files), Some(&config)).call.unwrap();
        assert_eq!(call.state.known("LD_LIBRARY_PATH"), Some("/opt/x"));
    }
    // It need not be in PATH.
    let config = config(&[("PATH", "/usr/bin")], &["/opt/conda/bin/conda", "run", "-n", "t"], &["python", "a.py"]);
    assert_eq!(called(&files, &config), "/opt/conda/envs/t/bin/python /app/a.py");
}

#[test]
fn uv_runs_in_the_environment_of_a_project() {
    let files = [
        ("usr/bin/uv", "elf"),
        ("srv/job/pyproject.toml", "[project]\n"),
        ("srv/job/.venv/pyvenv.cfg", "home = /usr/bin\n"),
        ("srv/job/.venv/bin/python", "-> /usr/bin/python3.11"),
        ("app", "/"),
    ];
    for (command, expected) in [
        (&["uv", "run", "--project", "/srv/job", "a.py"][..], "/srv/job/.venv/bin/python /app/a.py"),
        (&["uv", "run", "--directory", "/srv/job", "a.py"], "/srv/job/.venv/bin/python /srv/job/a.py"),
        (&["uv", "run", "--project", "/srv/job", "python", "a.py"], "/srv/job/.venv/bin/python /app/a.py"),
        (&["uv", "run", "a.py"], "unknown: uv run creates or chooses the project's environment when it runs"),
    ] {
        let config = config(&[("PATH", "/usr/bin")], &[], command);
        assert_eq!(called(&files, &config), expected, "{command:?}");
    }
}

#[test]
fn uv_installs_the_torch_of_a_lock() {
    let of = |locked: &str, command: &[&str]| {
        let files = [
            ("usr/bin/uv", "elf"),
            ("app/pyproject.toml", "[project]\n"),
            ("app/.venv/pyvenv.cfg", "home = /usr/bin\n"),
            ("app/.venv/bin/python", "-> /usr/bin/python3.11"),
            ("app/.venv/lib/python3.11/site-packages/torch-2.8.0.dist-info/METADATA", "x"),
        ];
        let lock = (file("app/uv.lock"), vec![Ok(Found::TorchPin(locked.to_owned()))]);
        let image = RootFs::fold(vec![Arc::new(base_layer(&files)), Arc::new(layer([lock]))], &Limits::default());
        let config =
            ImageConfig { working_directory: "/app".to_owned(), ..config(&[("PATH", "/usr/bin")], &[], command) };
        ImageStart::of(&image, Some(&config)).gap.map(|gap| gap.why)
    };
    let run = ["uv", "run", "a.py"];
    let why = "the image's command: uv run installs torch 2.9.0 of /app/uv.lock in place of 2.8.0 when it runs";
    assert_eq!(of("2.9.0", &run).as_deref(), Some(why));
    assert_eq!(of("2.7.0 2.8.0", &run), None);
    assert_eq!(of("2.9.0", &["uv", "run", "--no-sync", "a.py"]), None);
}

#[test]
fn a_word_that_linux_refuses_is_not_followed() {
    let script = format!("{}python3 a.py", "true;".repeat(LONGEST_WORD / 5));
    let config = config(&[("PATH", "/usr/bin")], &["sh", "-c", &script], &[]);
    let start = ImageStart::of(&image(VENV), Some(&config));
    let gap = start.gap.unwrap().why;
    assert!(gap.starts_with("a word of the command has 131"), "{gap}");
}

#[test]
fn a_choice_settles_what_is_unknown() {
    let choice = |command: Option<&str>, python: Option<&str>| StartChoice {
        command: command.map(|text| Ok(StartCommand::of_option("--command", text).unwrap())),
        python: python.map(str::to_owned),
        user: Some(Ok(StartUser::named("user"))),
    };
    let config = config(&[("PATH", "/usr/bin")], &["server"], &[]);
    let with = |start: StartChoice| called(VENV, &ImageConfig { start, ..config.clone() });
    assert!(with(StartChoice::default()).starts_with("unknown"));
    assert_eq!(with(choice(Some("python3 -m x"), None)), "/usr/bin/python3 -m x");
    assert_eq!(with(choice(None, Some("/opt/venv/bin/python"))), "/opt/venv/bin/python assumed");
    assert_eq!(with(choice(None, Some("python3"))), "/usr/bin/python3 assumed");
    assert_eq!(with(choice(Some("python3 -m x"), Some("python9"))), "/app/python9 -m x");
}

/// The image with a file that only root may execute in a folder that is open, and another in one that is closed.
fn closed() -> RootFs {
    const MODES: &[(&str, EntryKind, u32)] = &[
        ("opt/own/python3", EntryKind::File, 0o700),
        ("opt/own/start", EntryKind::File, 0o750),
        ("root", EntryKind::Directory, 0o700),
        ("root/bin/python3", EntryKind::File, 0o755),
        ("app/start", EntryKind::File, 0o755),
        ("app/text", EntryKind::File, 0o755),
        ("app/none", EntryKind::File, 0o755),
    ];
    let text = |path: &str| match path {
        "app/start" => Some("#!/opt/own/start\n"),
        "app/text" => Some("exec python3 train.py\n"),
        "app/none" => Some("#!/bin/none\n"),
        _ => None,
    };
    let upper = layer(MODES.iter().map(|(path, kind, mode)| {
        let entry = Entry { kind: kind.clone(), mode: *mode, owner: Some(FileOwner::ROOT), size: 9, ..file(path) };
        let elf = || Found::Elf(Box::new(ElfInfo::bare(64, Endian::Little, 62)));
        (entry, vec![Ok(text(path).map_or_else(elf, |text| Found::Text(text.as_bytes().into())))])
    }));
    RootFs::fold(vec![Arc::new(base_layer(&[])), Arc::new(upper)], &Limits::default())
}

#[test]
fn a_user_starts_what_permissions_allow() {
    let of = |user: &str, path: &str, command: &[&str]| {
        let config = ImageConfig { user: user.to_owned(), ..config(&[("PATH", path)], &[], command) };
        let start = ImageStart::of(&closed(), Some(&config));
        (start.fault.map(|fault| fault.message), start.call.map(|call| call.program.to_string()))
    };
    let path = "/opt/own:/root/bin:/usr/bin";
    assert_eq!(of("0", path, &["python3", "a.py"]), (None, Some("/opt/own/python3".to_owned())));
    assert_eq!(of("0", "/root/bin:/usr/bin", &["python3"]), (None, Some("/root/bin/python3".to_owned())));
    let passed = (None, Some("/usr/bin/python3".to_owned()));
    assert_eq!(of("user", path, &["python3", "a.py"]), passed);
    assert_eq!(of("user", path, &["sh", "-c", "exec python3 a.py"]), passed);
    assert_eq!(
        of("user", path, &["sh", "-c", "[ -x /opt/own/start ] && exec /opt/own/python3; exec python3 a.py"]),
        passed
    );
    let refusal = |user: &str, command: &str| of(user, "/usr/bin", &[command]).0.unwrap_or_default();
    assert_eq!(refusal("user", "/opt/own/start"), "exec: \"/opt/own/start\": permission denied");
    assert_eq!(refusal("user", "/app/start"), "exec /app/start: permission denied");
    assert_eq!(refusal("0", "/app/start"), "");
    assert_eq!(refusal("0", "/app/text"), "exec /app/text: exec format error");
    assert_eq!(refusal("0", "/app/none"), "exec /app/none: no such file or directory");
    // The import says whose mode is to blame for an interpreter.
    assert_eq!(of("user", "/usr/bin", &["/root/bin/python3"]), (None, Some("/root/bin/python3".to_owned())));
}

#[test]
fn commands_that_no_engine_executes_are_refused() {
    for (word, expected) in [
        ("python3", None),
        ("pyhton3", Some("exec: \"pyhton3\": executable file not found in $PATH")),
        ("/app/none", Some("exec: \"/app/none\": stat /app/none: no such file or directory")),
        ("./x", Some("exec: \"./x\": is a directory")),
    ] {
        let config = config(&[("PATH", "/usr/bin")], &[word], &[]);
        let start = ImageStart::of(&image(&[("app/x/y", "#")]), Some(&config));
        assert_eq!(start.fault.as_ref().map(|fault| &*fault.message), expected);
    }
}

/// What the command in a shell does not start, and the program that may be meant.
fn fault(files: &[(&str, &str)], command: &str) -> Option<(String, Option<String>)> {
    let config = config(&[("PATH", "/usr/local/bin:/usr/bin:/bin")], &["/bin/sh", "-c", command], &[]);
    let start = ImageStart::of(&image(files), Some(&config));
    start.fault.map(|fault| (format!("{}; {}", fault.message, fault.cause), fault.near))
}

const TOOLS: &[(&str, &str)] = &[
    ("usr/bin/apt-get", "elf"),
    ("usr/bin/cat", "elf"),
    ("usr/bin/chmod", "elf"),
    ("usr/bin/ln", "elf"),
    ("usr/bin/mkdir", "elf"),
    ("usr/bin/tail", "elf"),
    ("usr/bin/tee", "elf"),
];

#[test]
fn a_program_that_is_missing_in_a_shell_is_named() {
    const PATH: &str = "(/usr/local/bin:/usr/bin:/bin)";
    let files = [VENV, TOOLS, &[("venv.sh", "#!/bin/bash\nexec \"$@\"\n")]].concat();
    for (command, place, program, near) in [
        ("python train.py", "line 1", "python", "it has python3"),
        ("cd /app && python train.py", "line 1", "python", "it has python3"),
        ("exec python train.py", "line 1", "python", "it has python3"),
        ("set -e; python train.py; sleep 1", "line 1", "python", "it has python3"),
        ("python train.py; tail -f /dev/null", "line 1", "python", "it has python3"),
        ("python train.py 2>&1 | tee log", "line 1", "python", "it has python3"),
        ("python train.py & wait", "line 1", "python", "it has python3"),
        ("export A=1\nmkdir -p /out\npyhton3 train.py", "line 3", "pyhton3", "it has python3"),
        ("pyhton3 train.py && echo done", "line 1", "pyhton3", "it has python3"),
        ("timeout 5 pyhton3 train.py", "line 1", "pyhton3", "it has python3"),
        ("if [ -n \"$X\" ]; then python a.py; else python b.py; fi", "line 1", "python", "it has python3"),
        ("if [ \"$(date +%u)\" = 1 ]; then python a.py; else python b.py; fi", "line 1", "python", "it has python3"),
        ("nvidia-smi || exit 1; python a.py", "line 1", "python", "it has python3"),
    ] {
        let (message, meant) = fault(&files, command).unwrap_or_else(|| panic!("{command}"));
        let expected = format!(
            "the image's command, {place}: {program}: not found; no folder of PATH {PATH} has {program}; {near}"
        );
        assert_eq!(message, expected, "{command}");
        assert_eq!(meant.as_deref(), Some("python3"), "{command}");
    }
    let (message, near) = fault(&files, "exec /venv.sh torchrun a.py").unwrap();
    assert_eq!(message, format!("/venv.sh, line 2: torchrun: not found; no folder of PATH {PATH} has torchrun"));
    assert_eq!(near.as_deref(), Some("python3 -m torch.distributed.run"));
    let torch = [VENV, &[("opt/venv/lib/python3.11/site-packages/torch/version.py", "#")]].concat();
    let (_, near) = fault(&torch, "torchrun a.py").unwrap();
    assert_eq!(near.as_deref(), Some("/opt/venv/bin/torchrun"));
}

#[test]
fn a_program_that_may_exist_or_need_not_is_not_missing() {
    for command in [
        "python3 train.py",
        ". /opt/venv/bin/activate && python train.py",
        "command -v python >/dev/null && exec python a.py; exec python3 a.py",
        "if command -v python; then python a.py; else python3 a.py; fi",
        "python a.py || python3 a.py",
        "python a.py || true",
        "if python a.py; then echo yes; fi",
        "! python a.py",
        "python() { python3 \"$@\"; }; python a.py",
        "alias python=python3; python a.py",
        "source /opt/venv/bin/activate; command -V python; times; kill -l",
        "apt-get install -y python-is-python3 && python a.py",
        "ln -s /usr/bin/python3 /usr/local/bin/python && python a.py",
        "ln -s /usr/bin/python3 /usr/local/bin; python a.py",
        "cat > /usr/local/bin/python <<E\n#!/bin/sh\nE\nchmod +x /usr/local/bin/python; python a.py",
        "chmod +x /app/plain.sh && /app/plain.sh",
        "PATH=$(find / -name bin):$PATH; python a.py",
        "if [ \"$(date +%u)\" = 1 ]; then python a.py; fi",
        "[ \"$(date +%u)\" = 1 ] && python a.py",
        "for x in $(list); do python a.py; done",
        "if [ \"$(date +%u)\" = 1 ]; then exec server; fi; exec python a.py",
        "tput bold; echo ready",
        "tput bold; exec server",
        "nvidia-smi",
        "/workspace/train.sh",
        "eval \"$(missing-tool init)\"; true",
        "version=$(python -V); exec python3 a.py",
        "python2 a.py; python3 a.py",
    ] {
        let files = [VENV, TOOLS, &[("app/plain.sh", "#!/bin/sh\nexec python3 a.py\n")]].concat();
        assert_eq!(fault(&files, command), None, "{command}");
    }
}

#[test]
fn what_is_the_matter_with_a_program_is_named() {
    let machine = |number| Ok(Found::Elf(Box::new(ElfInfo::bare(64, Endian::Little, number))));
    let plain = |path: &str| (Entry { mode: 0o644, ..file(path) }, vec![machine(62)]);
    let link = |path: &str, target: &str| text_or_link(path, &format!("-> {target}"));
    let layers = [
        base_layer(&[("usr/bin/start", "#!/bin/zsh\n"), ("usr/bin/run", "#!/app/bin/python3\n"), ("app/text", "echo")]),
        layer([
            plain("usr/bin/tool"),
            link("app/bin/python", "/root/uv/bin/python3.11"),
            link("app/bin/python3", "python"),
            (file("usr/bin/arm"), vec![machine(183)]),
        ]),
    ];
    let rootfs = RootFs::fold(layers.map(Arc::new).to_vec(), &Limits::default());
    let platform = model::Platform { os: "linux".to_owned(), architecture: "amd64".to_owned(), variant: None };
    for (word, kind, cause, absent) in [
        (
            "python",
            "link",
            "/app/bin/python is a link to /root/uv/bin/python3.11, which the image does not have",
            Some("/root/uv/bin/python3.11"),
        ),
        (
            "run",
            "link",
            "/usr/bin/run begins with #!/app/bin/python3, and /app/bin/python3 is a link to /root/uv/bin/python3.11, \
             which the image does not have",
            Some("/root/uv/bin/python3.11"),
        ),
        (
            "start",
            "interpreter",
            "/usr/bin/start begins with #!/bin/zsh, and the image has no /bin/zsh",
            Some("/bin/zsh"),
        ),
        ("tool", "mode", "user 0 may not execute it because of /usr/bin/tool (mode 0644)", None),
        ("arm", "machine", "/usr/bin/arm is compiled for AArch64, and the image is for x86-64", None),
        ("/app", "folder", "/app is a folder", None),
        ("/usr/bin/none", "missing", "the image has no /usr/bin/none", None),
    ] {
        for words in [vec![word], vec!["sh", "-c", word]] {
            let config = config(&[("PATH", "/app/bin:/usr/bin")], &words, &[]);
            let config = ImageConfig { platform: Some(platform.clone()), ..config };
            let fault = ImageStart::of(&rootfs, Some(&config)).fault.unwrap_or_else(|| panic!("{words:?}"));
            let absent = absent.map(ImagePath::from);
            assert_eq!((fault.kind.name(), &*fault.cause, fault.absent), (kind, cause, absent), "{words:?}");
        }
    }
}

/// The status of dpkg with the release of dash that Debian 12 has.
const DASH: (&str, &str) = ("var/lib/dpkg/status", "Package: dash\nVersion: 0.5.12-2\n");

#[test]
fn a_script_that_its_shell_refuses_does_not_start() {
    for (script, kind, message) in [
        ("#!/bin/bash\r\npython3 a.py\r\n", "line-ends", "exec /e.sh: no such file or directory"),
        (
            "#!/usr/bin/env bash\r\n",
            "line-ends",
            "the image's command: /usr/bin/env: 'bash\\r': no such file or directory",
        ),
        ("#!/bin/bash\npython3 a.py\r\n", "line-ends", "/e.sh, line 2: a.py: no such file or directory"),
        ("#!/bin/bash\nif :; then\r\n:\r\nfi\r\n", "line-ends", "/e.sh, line 5: syntax error"),
        ("#!/bin/sh\nset -o pipefail\npython3 a.py\n", "shell", "/e.sh, line 2: set: Illegal option -o pipefail"),
        ("#!/bin/sh\nA=1\nL=(a b)\npython3 a.py\n", "shell", "/e.sh, line 3: syntax error"),
        ("#!/bin/sh\n[[ -n x ]] && python3 a.py\n", "shell", "/e.sh, line 2: [[: not found"),
        ("#!/bin/sh\nset -e\nsource /x.sh\npython3 a.py\n", "shell", "/e.sh, line 3: source: not found"),
        (
            "#!/bin/sh\npython3 a.py\nexec tini-none -- python3 a.py\n",
            "not-in-path",
            "/e.sh, line 3: tini-none: not found",
        ),
        ("#!/bin/sh\npython3 a.py && exec none a\n", "not-in-path", "/e.sh, line 2: none: not found"),
        ("#!/bin/sh\npython3 - <<E\n1\nE\nL=(a)\npython3 a.py\n", "shell", "/e.sh, line 5: syntax error"),
        ("#!/bin/sh\nexec gosu none python3 a.py\n", "user", "/e.sh, line 2: gosu: unable to find user none"),
    ] {
        let files = [VENV, &[("e.sh", script), DASH]].concat();
        let start = ImageStart::of(&image(&files), Some(&config(&[("PATH", "/usr/bin:/bin")], &["/e.sh"], &[])));
        let fault = start.fault.unwrap_or_else(|| panic!("{script}: {:?}", start.gap));
        assert_eq!((fault.kind.name(), &*fault.message), (kind, message), "{script}");
    }
}

#[test]
fn a_script_that_ends_with_an_error_starts_no_first_python() {
    for (script, why) in [
        ("cd /workspace && exec python3 a.py", "line 2: cd: /workspace does not exist"),
        ("set -e\n. /opt/env.sh\npython3 a.py", "line 3: /opt/env.sh does not exist"),
        ("echo usage\nexit 64", "line 3: the command fails, which ends the script"),
        ("set -u\necho $IFACE\npython3 a.py", "line 3: IFACE is not set, which 'set -u' refuses"),
        ("test -f /app/x && python3 a.py", "line 2: the command fails, which ends the script"),
        ("set -e\n/check.sh\npython3 a.py", ""),
    ] {
        let script = format!("#!/bin/bash\n{script}\n");
        let files = [VENV, &[("e.sh", &*script), ("check.sh", "#!/bin/sh\nexit 3\n")]].concat();
        let found = called(&files, &config(&[("PATH", "/usr/bin:/bin")], &["/e.sh"], &[]));
        let place = if why.is_empty() { "/check.sh, line 2: the command fails, which ends the script" } else { why };
        assert!(found.starts_with("unknown: ") && found.ends_with(place), "{script}: {found}");
    }
}

#[test]
fn engines_refuse_users_and_folders() {
    for (user, folder, kind, message) in [
        ("ubuntu", "/app", "user", "unable to find user ubuntu: no matching entries in passwd file"),
        ("user:hpc", "/app", "user", "unable to find group hpc: no matching entries in group file"),
        ("user", "app", "directory", "Cwd must be an absolute path"),
        ("user", "/app/env.py", "directory", "mkdir /app/env.py: not a directory"),
    ] {
        let config = ImageConfig {
            user: user.to_owned(),
            working_directory: folder.to_owned(),
            ..config(&[("PATH", "/usr/bin")], &["python3"], &["a.py"])
        };
        let fault = ImageStart::of(&image(VENV), Some(&config)).fault.unwrap();
        assert_eq!((fault.kind.name(), &*fault.message), (kind, message));
    }
}

#[test]
fn the_program_that_trains_is_judged_and_what_a_script_changes_is_assumed() {
    let files = [
        VENV,
        TOOLS,
        &[
            ("app/train.py", "import torch\n"),
            ("app/more.py", "import torch\n"),
            ("app/load.py", "import x\n"),
            ("usr/bin/pip", "#!/usr/bin/python3\nimport pip\n"),
        ],
    ]
    .concat();
    for (command, program, assumed) in [
        ("python3 load.py; python3 train.py; python3 load.py", "/usr/bin/python3 /app/train.py", ""),
        ("python3 load.py && exec python3 train.py", "/usr/bin/python3 /app/train.py", ""),
        (
            "python3 train.py; /opt/venv/bin/torchrun load.py",
            "/opt/venv/bin/python /app/load.py",
            "/app/train.py is not",
        ),
        ("python3 train.py; python3 more.py", "/usr/bin/python3 /app/more.py", "/app/train.py is not"),
        ("pip install x; python3 train.py", "/usr/bin/python3 /app/train.py", "pip install x"),
        (
            "ln -sf /x.so /usr/lib/y.so; python3 train.py",
            "/usr/bin/python3 /app/train.py",
            "ln -sf /x.so /usr/lib/y.so",
        ),
        ("echo A=1 >> /etc/nccl.conf; python3 train.py", "/usr/bin/python3 /app/train.py", "> /etc/nccl.conf"),
        ("mkdir -p /out; echo x > /out/log; python3 train.py", "/usr/bin/python3 /app/train.py", ""),
        ("set -u; python3 train.py $MASTER_ADDR", "/usr/bin/python3 /app/train.py", "MASTER_ADDR, which"),
    ] {
        let config = config(&[("PATH", "/usr/bin:/bin")], &["bash", "-c", command], &[]);
        assert_eq!(called(&files, &config), program, "{command}");
        let all = ImageStart::of(&image(&files), Some(&config)).assumed.join("; ");
        assert!(all.contains(assumed) && all.is_empty() == assumed.is_empty(), "{command}: {all}");
    }
}

#[test]
fn a_job_may_set_what_its_command_expands() {
    let called = |words: &[&str]| {
        let entrypoint = words.iter().map(|word| (*word).to_owned()).collect();
        let command = StartCommand {
            from: "job.sh".to_owned(),
            entrypoint: Some(entrypoint),
            arguments: Some(Vec::new()),
            directory: Some("/w".to_owned()),
            is_of_job: true,
        };
        let start = StartChoice { command: Some(Ok(command)), ..StartChoice::default() };
        called(VENV, &ImageConfig { start, ..config(&[("PATH", "/opt/venv/bin:/usr/bin")], &["server"], &[]) })
    };
    assert_eq!(called(&["torchrun", "--nnodes=${N}", "a.py"]), "/opt/venv/bin/python /w/a.py");
    assert_eq!(called(&["python3", "a.py"]), "/usr/bin/python3 /w/a.py");
    assert_eq!(called(&["bash", "-c", "cd /fsx/job && exec python3 a.py"]), "/usr/bin/python3 /fsx/job/a.py");
    assert_eq!(
        called(&["bash", "-c", "cd /app; torchrun --nnodes $N --rdzv-id=${SLURM_Y} a.py"]),
        "/opt/venv/bin/python /app/a.py"
    );
    assert_eq!(
        called(&["bash", "-lc", "if [ -n \"$DEBUG\" ]; then exec python3 a.py; else exec python a.py; fi"]),
        "unknown: job.sh, line 1: only a shell can determine which branch is run"
    );
    assert_eq!(called(&["${PYTHON}", "a.py"]), "unknown: job.sh: only a shell can determine which program is started");
    assert_eq!(called(&["python", "${SCRIPT}"]), "unknown: job.sh does not set SCRIPT");
}

#[test]
fn the_user_of_a_launch_keeps_the_groups_of_the_image() {
    let files = [
        ("etc/passwd", "ann:x:1000:1000::/home/ann:/bin/sh\n"),
        ("etc/group", "ann:x:1000:\nvideo:x:44:ann,bob\nrdma:x:50:\n"),
    ];
    let rootfs = image(&files);
    let given = |own: &str, name: Option<&str>, group: Option<u32>, more: &[&str]| {
        let name = name.map(ToOwned::to_owned);
        let more = more.iter().map(|group| (*group).to_owned()).collect();
        let user = ContainerUser::given(&rootfs, own, &StartUser { name, group, more, at: None });
        (user.id, user.groups)
    };
    assert_eq!(given("", Some("1000"), None, &[]), (Some(1000), vec![1000, 44]));
    assert_eq!(given("ann", None, Some(5), &["rdma", "2000", "none"]), (Some(1000), vec![5, 44, 50, 2000]));
    assert_eq!(given("7:7", None, None, &["9"]), (Some(7), vec![7, 9]));
    assert_eq!(given("ann", Some("8:44"), None, &[]), (Some(8), vec![44]));
}

#[test]
fn a_command_of_words_needs_no_shell() {
    let start = |text: &str| StartChoice {
        command: Some(Ok(StartCommand::of_option("--command", text).unwrap())),
        ..StartChoice::default()
    };
    let files = [("usr/bin/sh", "-> none"), ("bin", "-> usr/bin")];
    let config = config(&[("PATH", "/usr/bin")], &["server"], &[]);
    let of = |text: &str| called(&files, &ImageConfig { start: start(text), ..config.clone() });
    assert_eq!(of("[\"python3\", \"a.py\"]"), "/usr/bin/python3 /app/a.py");
    assert_eq!(of("python3 a.py"), "fails: exec: \"/bin/sh\": stat /bin/sh: no such file or directory");
    assert!(StartCommand::of_option("--command", "[\"python3\", 5]").is_err());
    assert!(StartCommand::of_option("--command", "[]").is_err());
    assert!(StartCommand::of_option("--command", "[ -f x ] && [ -f y ]").is_ok());
}

#[test]
fn a_launcher_of_another_python_than_the_active_one_leaves_packages_out() {
    let base = [
        ("usr/lib/python3.11/os.py", "#"),
        ("usr/local/bin/torchrun", "#!/usr/bin/python3\nfrom torch.distributed.run import main\n"),
        ("usr/local/lib/python3.11/dist-packages/torch/__init__.py", "#"),
        ("opt/venv/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = true\n"),
        ("opt/venv/bin/python", "-> /usr/bin/python3"),
        ("opt/venv/lib/python3.11/site-packages/pip-25.0.dist-info/METADATA", "#"),
    ];
    let project = [("opt/venv/lib/python3.11/site-packages/project-1.0.dist-info/METADATA", "#")];
    let own = [("opt/venv/bin/torchrun", "#!/opt/venv/bin/python\nfrom torch.distributed.run import main\n")];
    let path = "/opt/venv/bin:/usr/local/bin:/usr/bin";
    let environment = [("VIRTUAL_ENV", "/opt/venv"), ("PATH", path)];
    let left_out = |files: &[&[(&str, &str)]], environment: &[(&str, &str)], command: &[&str]| {
        let config = config(environment, &[], command);
        let rootfs = image(&files.concat());
        let facts = Facts::collect(&FactInputs { rootfs: &rootfs, config: Some(&config), launch: &[] });
        facts.get(key::START_LEFT_OUT).value().cloned()
    };
    let run = &["torchrun", "a.py"];
    assert_eq!(left_out(&[&base, &project], &environment, run), Some(vec!["project".to_owned()]));
    assert_eq!(left_out(&[&base], &environment, run), None);
    assert_eq!(left_out(&[&base, &project, &own], &environment, run), None);
    assert_eq!(left_out(&[&base, &project], &[("PATH", path)], run), None);
    assert_eq!(left_out(&[&base, &project], &environment, &["python", "-m", "torch.distributed.run", "a.py"]), None);
}
