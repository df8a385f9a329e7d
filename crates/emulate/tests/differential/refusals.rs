//! Tests that unsupported code ends in an error, never in a value that the process would not return.

use emulate::{ElfError, ElfImage, ExecutionError, call};

use super::toolchain::toolchain;

/// The reason why the function `f0` of a source cannot be emulated; `None` without a toolchain.
fn refusal_of(machine: &str, source: &str, options: &[&str]) -> Option<ExecutionError> {
    let library = toolchain(machine)?.library(source, options);
    let bytes = &*library.bytes;
    let image = ElfImage::open(&bytes).unwrap();
    let entry = image.function("f0").unwrap().unwrap();
    Some(call(&image, entry).map(|returned| returned.value()).expect_err(source).cause)
}

/// The reason why a function with this body cannot be emulated.
fn refusal(machine: &str, declarations: &str, body: &str, options: &[&str]) -> Option<ExecutionError> {
    refusal_of(machine, &format!("{declarations}\nextern \"C\" unsigned long f0() {{ {body} }}"), options)
}

/// The reason why a function in assembly cannot be emulated.
fn refusal_of_assembly(machine: &str, assembly: &str, options: &[&str]) -> Option<ExecutionError> {
    let source = format!("asm(\".text; .globl f0; .type f0, %function; f0: {assembly}; ret\");");
    refusal_of(machine, &source, options)
}

#[test]
fn x86_64_instructions_whose_forms_are_not_implemented_are_refused() {
    for (assembly, name) in [
        // A bit in memory far from the operand.
        ("movq $-1, -8(%rsp); movl $200, %ecx; xorl %eax, %eax; btq %rcx, -8(%rsp); setc %al", "Bt"),
        // The mask preserves half of an element.
        ("vxorps %xmm1, %xmm1, %xmm1; vmovups %xmm1, %xmm0{%k1}; vmovq %xmm0, %rax", "Vmovups"),
        // A broadcast: every element is the same four bytes of memory.
        ("movq $5, -16(%rsp); vxorps -16(%rsp){1to4}, %xmm1, %xmm0; vmovq %xmm0, %rax", "Vxorps"),
        ("popw %ax; pushw %ax", "Pop"),
        // A return that also removes arguments from the stack.
        ("ret $8", "Ret"),
        ("divq %rcx", "Div"),
        ("mulq %rcx", "Mul"),
        ("rolq $3, %rax", "Rol"),
        ("cpuid", "Cpuid"),
        ("std", "Std"),
        ("cvtsi2sd %rax, %xmm0", "Cvtsi2sd"),
    ] {
        let Some(error) = refusal_of_assembly("x86_64", assembly, &[]) else { return };
        assert_eq!(error.to_string(), format!("the instruction {name} is not supported"), "{assembly}");
    }
}

#[test]
fn aarch64_instructions_that_are_not_implemented_are_refused() {
    for assembly in
        ["umulh x0, x1, x2", "sdiv x0, x1, x2", "fadd d0, d1, d2", "crc32x w0, w1, x2", "add v0.4s, v1.4s, v2.4s"]
    {
        let Some(error) = refusal_of_assembly("aarch64", assembly, &["-march=armv8-a+crc"]) else { return };
        assert!(matches!(error, ExecutionError::UnknownInstruction(_)), "{assembly}: {error}");
    }
}

#[test]
fn variables_of_other_libraries_have_no_value() {
    for machine in ["x86_64", "aarch64"] {
        // The variable is 1 in every process.
        let Some(error) = refusal(machine, "extern \"C\" int optind;", "return optind;", &["-O2"]) else { return };
        assert_eq!(error.to_string(), "it uses optind, whose value is unknown", "{machine}");
    }
}

#[test]
fn functions_of_other_libraries_are_named() {
    for machine in ["x86_64", "aarch64"] {
        let body = "return getpid() + 1;";
        let Some(error) = refusal(machine, "#include <unistd.h>", body, &["-O2"]) else { return };
        assert_eq!(error.to_string(), "it calls getpid, which is not implemented", "{machine}");
    }
}

#[test]
fn thread_local_variables_have_no_value() {
    for machine in ["x86_64", "aarch64"] {
        for model in ["global-dynamic", "initial-exec"] {
            let option = format!("-ftls-model={model}");
            let declaration = "__thread unsigned long local = 7;";
            let Some(error) = refusal(machine, declaration, "return local;", &["-O2", &option]) else { return };
            assert!(!matches!(error, ExecutionError::TooManySteps(_)), "{machine} {model}: {error}");
        }
    }
}

#[test]
fn a_function_that_is_chosen_at_run_time_is_not_taken_for_its_resolver() {
    let declarations = "extern \"C\" { static unsigned long one() { return 1; }
        static unsigned long (*resolve())() { return one; }
        unsigned long chosen() __attribute__((ifunc(\"resolve\"))); }";
    let Some(error) = refusal("x86_64", declarations, "return chosen() + 1;", &["-O2"]) else { return };
    assert!(matches!(error, ExecutionError::Unmapped(_)), "{error}");
    let library = toolchain("x86_64").unwrap().library(declarations, &["-O2"]);
    let bytes = &*library.bytes;
    let found = ElfImage::open(&bytes).unwrap().function("chosen");
    assert!(matches!(found, Err(ElfError::IndirectFunction)), "{found:?}");
}

#[test]
fn a_call_without_end_ends() {
    let Some(error) = refusal("x86_64", "volatile int zero;", "while (!zero) {} return 1;", &["-O2"]) else { return };
    assert!(matches!(error, ExecutionError::TooManySteps(1_000_000)), "{error}");
}
