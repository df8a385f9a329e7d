//! Replacements of a function's body by an immediate return.

use syn::{GenericArgument, Path, PathArguments, ReturnType, Type};

/// Values of the return type, as code. Those that do not compile are dropped later, since types that implement `Default` are unknown here.
pub(crate) fn values(output: &ReturnType) -> Vec<String> {
    match output {
        ReturnType::Default => vec![String::new()],
        ReturnType::Type(_, kind) => of_type(kind),
    }
}

fn of_type(kind: &Type) -> Vec<String> {
    match kind {
        Type::Never(_) | Type::ImplTrait(_) => Vec::new(),
        Type::Path(path) => of_path(&path.path),
        _ => vec!["Default::default()".to_owned()],
    }
}

fn of_path(path: &Path) -> Vec<String> {
    let Some(last) = path.segments.last() else { return Vec::new() };
    match last.ident.to_string().as_str() {
        "bool" => vec!["true".to_owned(), "false".to_owned()],
        "Option" => vec!["None".to_owned()],
        "Result" => match &last.arguments {
            PathArguments::AngleBracketed(arguments) => match arguments.args.first() {
                Some(GenericArgument::Type(kind)) => of_type(kind).iter().map(|value| format!("Ok({value})")).collect(),
                _ => Vec::new(),
            },
            _ => vec!["Ok(Default::default())".to_owned()],
        },
        "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" => vec!["0".to_owned(), "1".to_owned()],
        _ => vec!["Default::default()".to_owned()],
    }
}
