//! `cd` and `pushd`.

use super::super::evaluate::{Evaluator, FileKind, Surroundings};
use super::super::state::{Field, ShellState, ShellValue};
use super::BuiltinCall;

impl<S: Surroundings> Evaluator<'_, S> {
    pub(super) fn change_directory(&mut self, state: &mut ShellState, call: &BuiltinCall<'_>) -> Option<u8> {
        let operands: Vec<&Field> = call
            .fields
            .iter()
            .filter(|field| !field.as_ref().is_ok_and(|text| text == "--" || text == "-P" || text == "-L"))
            .collect();
        let target = match operands.as_slice() {
            [] => state.text("HOME"),
            [Ok(text)] if text == "-" => state.text("OLDPWD"),
            [Ok(text)] => Ok(text.clone()),
            [Err(unknown)] => Err(unknown.gap.clone()),
            _ => return Some(1),
        };
        let path = target.and_then(|target| state.absolute(&target));
        let path = match path {
            Ok(path) => path,
            Err(gap) => {
                state.directory = Err(gap);
                return None;
            }
        };
        let at = self.place(call.line);
        let before = state.directory.clone().map(ShellValue::Text);
        match self.kind(state, &path, call.line) {
            Ok(Some(FileKind::Directory)) => {}
            // The script has made it.
            Err(_) if state.touched.contains(&path) => {}
            Ok(None) if self.surroundings.is_given(&path, &at) => {}
            Ok(_) => return Some(1),
            Err(gap) => {
                state.directory = Err(gap);
                return None;
            }
        }
        state.directory = Ok(path);
        state.assign("OLDPWD", before, at);
        Some(0)
    }
}
