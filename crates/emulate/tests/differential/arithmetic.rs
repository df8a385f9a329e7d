//! Tests of functions that return numbers, both handwritten and generated.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use emulate::{ElfImage, ExecutionError, call};
use fastrand::Rng;

use super::toolchain::{Driver, Library, Toolchain, toolchain};

const LEVELS: &[&str] = &["-O0", "-O2", "-O3"];

/// Integer code with loops, calls, tables and switches. Every function must be emulated.
const BY_HAND: &str = r#"
#include <cstdint>
#define F extern "C" uint64_t
static volatile uint64_t inputs[] = {0, 1, 0x8000000000000000, 0xffffffffffffffff, 0x7fffffff, 0x123456789abcdef0, 42, 10};
static const uint8_t table[] = "a table of bytes that is read by index";
static uint64_t written[4];
__attribute__((noinline)) static uint64_t triangle(uint64_t count) { return count ? count + triangle(count - 1) : 0; }
__attribute__((noinline)) static int compare(int64_t a, int64_t b) { return a < b ? -1 : a > b; }
F f0() { uint64_t sum = 0; for (uint64_t i = 0; i < inputs[7]; i++) sum += i * i; return sum; }
F f1() { return triangle(inputs[6]); }
F f2() { uint64_t hash = 14695981039346656037u; for (uint8_t byte : table) hash = (hash ^ byte) * 1099511628211u; return hash; }
F f3() { uint64_t a = inputs[7], b = inputs[6]; while (b) { uint64_t rest = a; while (rest >= b) rest -= b; a = b; b = rest; } return a; }
F f4() { for (int i = 0; i < 4; i++) written[i] += inputs[i] + 1; return written[0] ^ written[1] ^ written[2] ^ written[3]; }
F f5() { uint64_t bits = 0; for (int i = 0; i < 8; i++) for (int j = 0; j < 8; j++)
  bits = bits << 1 | (compare(inputs[i], inputs[j]) > 0) ^ ((int32_t)inputs[i] >= (int32_t)inputs[j]) ^ (inputs[i] < inputs[j]); return bits; }
F f6() { uint64_t sum = 0; for (int i = 0; i < 12; i++) switch (inputs[7] + i) {
  case 10: sum += 3; break; case 11: sum *= 5; break; case 12: sum ^= 77; break; case 13: sum -= 1; break; case 14: sum <<= 3; break;
  case 15: sum |= 1; break; case 16: sum += sum; break; default: sum += 1000003; } return sum; }
F f7() { int64_t value = inputs[2]; return (value >> 7) + (int16_t)inputs[5] + (int8_t)inputs[5] + (uint8_t)inputs[3] + (int32_t)inputs[4]; }
F f8() { uint32_t a = inputs[3], b = inputs[4]; uint16_t c = a + b; uint8_t d = c * b; return a - b + c + d; }
F f9() { uint64_t (*const functions[])() = {f0, f1, f2}; return functions[inputs[1]]() + functions[inputs[0]](); }
F f10() { unsigned __int128 sum = inputs[3]; sum += inputs[5]; sum += inputs[3]; return (uint64_t)(sum >> 64) ^ (uint64_t)sum; }
F f11() { volatile uint8_t bytes[300]; for (int i = 0; i < 300; i++) bytes[i] = i * 7; uint64_t sum = 0; for (int i = 0; i < 300; i++) sum = sum * 31 + bytes[i]; return sum; }
"#;

/// Runs a test with the toolchain of a machine and a driver, at each optimization level.
fn at_each_level(machine: &str, test: impl Fn(&Toolchain, &Driver, &str)) {
    let Some(toolchain) = toolchain(machine) else { return };
    let driver = toolchain.driver("numbers.cc", &[]);
    for level in LEVELS {
        test(toolchain, &driver, level);
    }
}

/// The native and the emulated result of each function.
fn results(driver: &Driver, library: &Library) -> Vec<(u64, Result<u64, ExecutionError>)> {
    let bytes = &*library.bytes;
    let image = ElfImage::open(&bytes).unwrap();
    let printed = driver.run(library);
    let results: Vec<_> = printed
        .lines()
        .enumerate()
        .map(|(number, line)| {
            let entry = image.function(&format!("f{number}")).unwrap().unwrap();
            (line.parse().unwrap(), call(&image, entry).map(|returned| returned.value()).map_err(|error| error.cause))
        })
        .collect();
    assert!(!results.is_empty());
    results
}

fn numbers_by_hand(machine: &str) {
    at_each_level(machine, |toolchain, driver, level| {
        let library = toolchain.library(BY_HAND, &[level, "-fno-tree-vectorize"]);
        let results = results(driver, &library);
        assert_eq!(results.len(), 12);
        for (number, (expected, found)) in results.into_iter().enumerate() {
            let found = found.unwrap_or_else(|error| panic!("{machine} {level} f{number}: {error}"));
            assert_eq!(found, expected, "{machine} {level} f{number}");
        }
    });
}

#[test]
fn x86_64_loops_and_calls_return_what_they_do_for_real() {
    numbers_by_hand("x86_64");
}

#[test]
fn aarch64_loops_and_calls_return_what_they_do_for_real() {
    numbers_by_hand("aarch64");
}

/// Generated functions per library.
const GENERATED: usize = 120;

const TYPES: &[&str] = &["uint64_t", "int64_t", "uint32_t", "int32_t", "uint16_t", "int16_t", "uint8_t", "int8_t"];

/// A C expression of the variables `a` to `d`, `sum` and `i`, without undefined behaviour under `-fwrapv`.
fn expression(random: &mut Rng, depth: u32) -> String {
    if depth == 0 || random.u8(..8) == 0 {
        return match random.u8(..8) {
            0 => format!("{}", random.i32(..)),
            1 => format!("{}u", random.u64(..) >> random.u32(..64)),
            _ => random.choice(["a", "b", "c", "d", "sum", "i"]).unwrap().to_owned(),
        };
    }
    let kind = random.choice(TYPES).unwrap();
    let left = expression(random, depth - 1);
    let right = expression(random, depth - 1);
    match random.u8(..100) {
        0..50 => {
            let operator = random.choice(["+", "-", "*", "&", "|", "^"]).unwrap();
            format!("({kind})(({left}) {operator} ({right}))")
        }
        50..65 => {
            let (operator, wide, most) = *random
                .choice(&[("<<", "uint64_t", 63), (">>", "uint64_t", 63), (">>", "int64_t", 63), (">>", "int32_t", 31)])
                .unwrap();
            format!("({kind})(({wide})({left}) {operator} (({right}) & {most}))")
        }
        65..80 => {
            let operator = random.choice(["<", "<=", "==", "!="]).unwrap();
            format!("(({kind})({left}) {operator} ({kind})({right}) ? {} : {})", atom(random), atom(random))
        }
        80..87 => format!("({kind})~({left})"),
        87..94 => format!("({kind})-({left})"),
        94..99 => format!("(({kind})({left}) >> 3 | ({kind})({left}) << 5)"),
        _ => format!("({kind})((uint64_t)({left}) / ((uint64_t)({right}) | 1))"),
    }
}

fn atom(random: &mut Rng) -> String {
    expression(random, 0)
}

fn generated(seed: u64) -> String {
    let mut random = Rng::with_seed(seed);
    let mut source = "#include <cstdint>\nstatic volatile uint64_t inputs[] = {".to_owned();
    for _ in 0..64 {
        write!(source, "{}u, ", random.u64(..) >> random.u32(..64)).unwrap();
    }
    source.push_str("0};\n");
    for number in 0..GENERATED {
        write!(source, "extern \"C\" uint64_t f{number}() {{ ").unwrap();
        for name in ["a", "b", "c", "d"] {
            let kind = random.choice(TYPES).unwrap();
            write!(source, "{kind} {name} = inputs[{}]; ", random.u8(..64)).unwrap();
        }
        let rounds = random.u8(1..9);
        let change = expression(&mut random, 3);
        let sum = expression(&mut random, 4);
        let name = random.choice(["a", "b", "c", "d"]).unwrap();
        writeln!(
            source,
            "uint64_t sum = 0; for (int32_t i = 0; i < {rounds}; i++) {{ {name} = {change}; sum = sum * 3 + ({sum}); }} return sum; }}"
        )
        .unwrap();
    }
    source
}

fn generated_numbers(machine: &str) {
    let source = generated(7);
    at_each_level(machine, |toolchain, driver, level| {
        let library = toolchain.library(&source, &[level, "-fwrapv"]);
        let results = results(driver, &library);
        assert_eq!(results.len(), GENERATED);
        let mut refused = BTreeMap::<String, usize>::new();
        for (number, (expected, found)) in results.into_iter().enumerate() {
            match found {
                Ok(found) => assert_eq!(found, expected, "{machine} {level} f{number}"),
                Err(ExecutionError::UnknownInstruction(name)) => *refused.entry(name).or_default() += 1,
                Err(error) => panic!("{machine} {level} f{number}: {error}"),
            }
        }
        let count: usize = refused.values().sum();
        assert!(count * 10 < GENERATED * 4, "{machine} {level}: {count} are refused: {refused:?}");
    });
}

#[test]
fn x86_64_expressions_have_the_value_they_have_for_real_or_none() {
    generated_numbers("x86_64");
}

#[test]
fn aarch64_expressions_have_the_value_they_have_for_real_or_none() {
    generated_numbers("aarch64");
}
