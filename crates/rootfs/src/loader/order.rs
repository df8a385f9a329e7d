//! The order in which objects are relocated: each after its dependencies (glibc, `elf/dl-sort-maps.c`; before 2.35,
//! `_dl_sort_maps` in `elf/dl-deps.c` and `elf/dl-fini.c`).

use super::process::Process;

/// The objects from `first` on of a search list, in the order of their relocation. The search list begins with the
/// object that was opened.
pub(super) fn relocation_order(process: &Process<'_>, first: usize, search_list: &[usize]) -> Vec<usize> {
    let needs = |id: usize| process.objects.get(id).map_or(&[][..], |object| &object.needs);
    let order = if process.system.sorts_depth_first() {
        depth_first(search_list, needs)
    } else {
        // The loader sorts what it mapped, in that order.
        let mut new: Vec<usize> = search_list.iter().copied().filter(|id| *id >= first).collect();
        new.sort_unstable();
        by_moves(new, needs)
    };
    order.into_iter().filter(|id| *id >= first).collect()
}

/// Postorder of a depth-first search that starts at the end of the search list. The opened object comes last.
fn depth_first<'n>(search_list: &[usize], needs: impl Fn(usize) -> &'n [usize]) -> Vec<usize> {
    let Some((&opened, _)) = search_list.split_first() else { return Vec::new() };
    let mut visited = std::collections::BTreeSet::new();
    let mut order = Vec::with_capacity(search_list.len());
    for &root in search_list.iter().rev() {
        // Each entry of the stack is an object with the number of its dependencies that were visited.
        let mut stack: Vec<(usize, usize)> = Vec::new();
        if visited.insert(root) {
            stack.push((root, 0));
        }
        while let Some((id, done)) = stack.last_mut() {
            // The dependencies of the opened object are not known to the search yet.
            let next = if *id == opened { None } else { needs(*id).get(*done) };
            *done += 1;
            match next {
                Some(&other) if search_list.contains(&other) && visited.insert(other) => stack.push((other, 0)),
                Some(_) => {}
                None => {
                    order.push(*id);
                    stack.pop();
                }
            }
        }
    }
    order.retain(|id| *id != opened);
    order.push(opened);
    order
}

/// The algorithm of older releases: moves each object behind the last one that depends on it, then reverses the list.
/// `seen` ends the moves in a circle of dependencies.
fn by_moves<'n>(mut list: Vec<usize>, needs: impl Fn(usize) -> &'n [usize]) -> Vec<usize> {
    let mut seen = vec![0_usize; list.len()];
    let mut at = 0;
    while let (Some(&this), Some(count)) = (list.get(at), seen.get_mut(at)) {
        *count += 1;
        let behind = list.iter().rposition(|&id| needs(id).contains(&this)).filter(|last| *last > at);
        let Some(last) = behind else {
            at += 1;
            seen.iter_mut().skip(at).for_each(|count| *count = 0);
            continue;
        };
        if let Some(part) = list.get_mut(at..=last) {
            part.rotate_left(1);
        }
        let is_circle = seen.get(at + 1).is_some_and(|&count| count > seen.len() - at);
        if is_circle {
            at += 1;
            seen.iter_mut().skip(at).for_each(|count| *count = 0);
        } else if let Some(part) = seen.get_mut(at..=last) {
            part.rotate_left(1);
        }
    }
    list.reverse();
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dependencies of the objects 0 to 4: 0 needs 1, 2 and 3; 1 needs 4; 3 needs 2.
    const NEEDS: [&[usize]; 5] = [&[1, 2, 3], &[4], &[], &[2], &[]];

    #[test]
    fn dependencies_come_first() {
        let needs = |id: usize| NEEDS[id];
        assert_eq!(depth_first(&[0, 1, 2, 3, 4], needs), [4, 2, 3, 1, 0]);
        assert_eq!(by_moves(vec![0, 1, 2, 3, 4], needs), [4, 2, 3, 1, 0]);
    }

    #[test]
    fn a_circle_ends() {
        const CIRCLE: [&[usize]; 3] = [&[1], &[2], &[1, 0]];
        let needs = |id: usize| CIRCLE[id];
        let opened_last = depth_first(&[0, 1, 2], needs);
        assert_eq!(opened_last, [1, 2, 0]);
        let mut any = by_moves(vec![0, 1, 2], needs);
        any.sort_unstable();
        assert_eq!(any, [0, 1, 2]);
    }
}
