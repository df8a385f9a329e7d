//! What the words behind the name of a Python make it run (`python3 --help`), and what launchers of PyTorch make of
//! theirs: they start the same interpreter again for each GPU.

use model::ImagePath;
use shell::{Field, ShellGap};

use super::arguments::{OptionTable, Words};
use super::call::{PythonFlags, PythonTarget};

/// `torchrun`, `python -m torch.distributed.run` and `python -m torch.distributed.launch`.
const TORCHRUN: OptionTable = OptionTable::Flags(
    "--standalone -m --module --no-python --no_python --run-path --run_path -h --help --use-env --use_env \
        --use-agent-store --no-use-agent-store",
);

/// `accelerate launch`.
const ACCELERATE: OptionTable = OptionTable::Valued(
    "--config_file --mixed_precision --num_processes --num_machines --num_cpu_threads_per_process \
        --machine_rank --main_process_ip --main_process_port --gpu_ids --dynamo_backend --dynamo_mode \
        --rdzv_backend --rdzv_conf --tee --role --log_dir --max_restarts --monitor_interval \
        --deepspeed_config_file --zero_stage --offload_optimizer_device --offload_param_device \
        --gradient_accumulation_steps --gradient_clipping --deepspeed_hostfile --deepspeed_multinode_launcher \
        --zero3_init_flag --zero3_save_16bit_model --fsdp_sharding_strategy --fsdp_auto_wrap_policy \
        --fsdp_offload_params --fsdp_transformer_layer_cls_to_wrap --fsdp_backward_prefetch --fsdp_state_dict_type \
        --fsdp_use_orig_params --fsdp_version --fsdp_cpu_ram_efficient_loading --fsdp_sync_module_states \
        --fsdp_activation_checkpointing --main_training_function --downcast_bf16 --num-processes --num-machines \
        --machine-rank --main-process-ip --main-process-port --mixed-precision --config-file",
);

/// `deepspeed`.
const DEEPSPEED: OptionTable = OptionTable::Valued(
    "-H --hostfile -i --include -e --exclude --num_nodes --num_gpus --master_port --master_addr --launcher \
        --launcher_args --min_elastic_nodes --max_elastic_nodes --node_rank --ssh_port --venv_script \
        --bind_core_list --autotuning --elastic_training --save_pid --enable_each_rank_log",
);

/// What an interpreter is called with.
#[derive(Debug, Default)]
pub(super) struct PythonArguments {
    pub(super) flags: PythonFlags,
    /// What it runs; `None` if another program is started.
    pub(super) target: PythonTarget,
    /// The program that a launcher starts in place of Python.
    pub(super) program: Option<Vec<Field>>,
}

/// A target as a command names it: a relative script is resolved in `directory`.
fn script(directory: &Result<String, ShellGap>, path: &str) -> Result<PythonTarget, ShellGap> {
    if path.starts_with('/') {
        return Ok(PythonTarget::Script(ImagePath::from(path)));
    }
    let folder = directory.clone()?;
    Ok(PythonTarget::Script(ImagePath::from(folder.as_str()).join(path.as_bytes())))
}

/// Reads the words behind the interpreter.
pub(super) fn arguments(words: &[Field], directory: &Result<String, ShellGap>) -> Result<PythonArguments, ShellGap> {
    let mut words = Words::new(words);
    let mut flags = PythonFlags::default();
    let done = |flags, target| Ok(PythonArguments { flags, target, program: None });
    while let Some(word) = words.next() {
        let word = word?;
        if word == "-" {
            return done(flags, code(directory)?);
        }
        if let Some(long) = word.strip_prefix("--") {
            if long == "check-hash-based-pycs" {
                words.next();
            }
            continue;
        }
        let Some(letters) = word.strip_prefix('-') else {
            return done(flags, script(directory, word)?);
        };
        for (at, letter) in letters.char_indices() {
            let attached = letters.get(at + letter.len_utf8()..).unwrap_or_default();
            match letter {
                'I' => flags.isolated = true,
                'E' => flags.ignores_environment = true,
                's' => flags.no_user_site = true,
                'S' => flags.no_site = true,
                'P' => flags.safe_path = true,
                'c' => return done(flags, command(attached, words.rest(), directory)?),
                'm' => {
                    let module =
                        if attached.is_empty() { words.next().transpose()?.unwrap_or_default() } else { attached };
                    directory.clone()?;
                    return module_target(module, words.rest(), directory, flags);
                }
                'W' | 'X' => {
                    if attached.is_empty() {
                        words.next();
                    }
                    break;
                }
                _ => {}
            }
        }
    }
    done(flags, code(directory)?)
}

/// `-cCODE` and `-c CODE`.
fn command(attached: &str, rest: &[Field], directory: &Result<String, ShellGap>) -> Result<PythonTarget, ShellGap> {
    let target = code(directory)?;
    Ok(match rest.first() {
        _ if !attached.is_empty() => PythonTarget::Command(attached.to_owned()),
        Some(Ok(text)) => PythonTarget::Command(text.clone()),
        Some(Err(_)) | None => target,
    })
}

/// `-c`, standard input and the prompt import from the working directory.
fn code(directory: &Result<String, ShellGap>) -> Result<PythonTarget, ShellGap> {
    directory.clone().map(|_| PythonTarget::Code)
}

fn module_target(
    module: &str,
    words: &[Field],
    directory: &Result<String, ShellGap>,
    flags: PythonFlags,
) -> Result<PythonArguments, ShellGap> {
    let launcher = match module {
        "torch.distributed.run" | "torch.distributed.launch" | "torch.distributed.elastic.multiprocessing" => {
            "torchrun"
        }
        "accelerate.commands.launch" => "accelerate-launch",
        "deepspeed.launcher.runner" => "deepspeed",
        _ => return Ok(PythonArguments { flags, target: PythonTarget::Module(module.to_owned()), program: None }),
    };
    launched(launcher, words, directory).unwrap_or_else(|| {
        Ok(PythonArguments { flags, target: PythonTarget::Module(module.to_owned()), program: None })
    })
}

/// What the workers of a launcher run; `None` for any other program. Workers do not inherit the options of the
/// launcher's own interpreter.
pub(super) fn launched(
    name: &str,
    words: &[Field],
    directory: &Result<String, ShellGap>,
) -> Option<Result<PythonArguments, ShellGap>> {
    let mut words = Words::new(words);
    let table: &OptionTable = match name {
        "torchrun" => &TORCHRUN,
        "accelerate" if words.peek() == Some("launch") => {
            words.next();
            &ACCELERATE
        }
        "accelerate-launch" => &ACCELERATE,
        "deepspeed" => &DEEPSPEED,
        _ => return None,
    };
    Some(worker(&mut words, table, directory))
}

fn worker(
    words: &mut Words<'_>,
    table: &OptionTable,
    directory: &Result<String, ShellGap>,
) -> Result<PythonArguments, ShellGap> {
    let mut is_module = false;
    let mut is_program = false;
    while let Some(option) = words.option(table)? {
        is_module |= matches!(option.name, "-m" | "--module");
        is_program |= matches!(option.name, "--no-python" | "--no_python");
    }
    if is_program {
        return Ok(PythonArguments { program: Some(words.rest().to_vec()), ..PythonArguments::default() });
    }
    let target = match words.next().transpose()? {
        None => code(directory)?,
        Some(module) if is_module => {
            directory.clone()?;
            PythonTarget::Module(module.to_owned())
        }
        Some(path) => script(directory, path)?,
    };
    Ok(PythonArguments { target, ..PythonArguments::default() })
}
