"""Worlds of symbols. Each is generated from a number: a program and libraries that define and use the same few symbols, with
versions, weak and protected symbols, thread-local variables and IFUNCs. Most of them lack a definition somewhere."""
import random

COUNT = 80
NAMES = {"s%d" % index: kind for index, kind in enumerate(["function", "function", "function", "data", "data", "tls"])}
PROTOTYPES = {"function": "int %s(void)", "data": "int %s", "tls": "__thread int %s"}


def worlds():
    return {"symbols_%02d" % number: build(number) for number in range(COUNT)}


def build(number):
    def world(w):
        Generator(w, random.Random(number)).build()
    world.__doc__ = "World of symbols generated from the number %d." % number
    return world


def definition(name, form):
    kind, prototype = NAMES[name], PROTOTYPES[NAMES[name]]
    attribute = {"weak": "__attribute__((weak)) ", "protected": '__attribute__((visibility("protected"))) ',
                 "hidden": '__attribute__((visibility("hidden"))) '}.get(form, "")
    if form == "ifunc" and kind == "function":
        return 'static int %s_at_work(void) { return 1; } static void *%s_choice(void) { return %s_at_work; }\n' \
               'int %s(void) __attribute__((ifunc("%s_choice")));\n' % ((name,) * 5)
    if form == "old" and kind != "tls":
        body = " { return 1; }" if kind == "function" else " = 1;"
        return prototype % (name + "_old") + body + '\n__asm__(".symver %s_old, %s@V0");\n' % (name, name)
    return attribute + prototype % name + (" { return 1; }\n" if kind == "function" else " = 1;\n")


def use(name, form):
    kind, prototype = NAMES[name], PROTOTYPES[NAMES[name]]
    weak = " __attribute__((weak))" if form == "weak" else ""
    declaration = "extern " + prototype % name + weak + ";\n"
    if kind == "function" and form == "pointer":
        return declaration + "int (*pointer_%s)(void) = %s;\n" % (name, name)
    if kind == "function":
        return declaration + "int use_%s(void) { return %s(); }\n" % (name, name)
    return declaration + "int *use_%s(void) { return &%s; }\n" % (name, name)


class Generator:
    def __init__(self, w, random):
        self.w, self.random = w, random

    def chance(self, part):
        return self.random.random() < part

    def sample(self, names, most):
        names = sorted(names)
        return self.random.sample(names, self.random.randint(0, min(most, len(names))))

    def build(self):
        count = self.random.randint(2, 5)
        libraries = ["libs%s.so" % letter for letter in "abcde"[:count]]
        for name in libraries:
            self.stub(name)
        for index, name in enumerate(libraries):
            later = libraries[index + 1:] if self.chance(0.9) else [other for other in libraries if other != name]
            self.library(name, self.sample(later, 3))
        needs = self.sample(libraries[1:], 2)
        self.app(needs)
        if self.chance(0.8):
            self.w.opens = [libraries[0]]
        if self.chance(0.15):
            self.w.environment["LD_PRELOAD"] = "/one/" + libraries[-1]
        if self.chance(0.15):
            self.w.environment["LD_BIND_NOW"] = "1"

    def stub(self, name):
        """The library as the others were linked against it, which has all symbols."""
        text = "".join(definition(symbol, "plain") for symbol in NAMES)
        self.compile("/stub/" + name, text, [], self.versions() if self.chance(0.6) else None, name)

    def library(self, name, needs):
        defined = self.sample(NAMES, 5)
        forms = {symbol: self.random.choice(["plain"] * 4 + ["weak", "protected", "hidden", "ifunc", "old"])
                 for symbol in defined}
        used = self.sample(set(NAMES) - set(defined), 4)
        text = "".join(definition(symbol, forms[symbol]) for symbol in defined)
        text += "".join(use(symbol, self.random.choice(["call", "call", "pointer", "weak"])) for symbol in used)
        flags = ["-Wl,--hash-style=" + self.random.choice(["sysv", "gnu", "both"])]
        flags += ["-Wl,-Bsymbolic"] if self.chance(0.2) else []
        flags += ["-Wl,-z,now"] if self.chance(0.3) else []
        has_versions = "old" in forms.values() or self.chance(0.6)
        self.compile("/one/" + name, text, flags, self.versions() if has_versions else None, name, needs)

    def versions(self):
        return "V0 { }; V1 { global: s*; use*; pointer*; local: *_old; } V0;"

    def compile(self, path, text, flags, versions, soname, needs=()):
        source = self.write(path + ".c", text)
        if versions:
            flags = [*flags, "-Wl,--version-script," + str(self.write(path + ".map", versions))]
        flags = ["-shared", "-fPIC", "-Wl,-soname," + soname, *flags]
        self.w.compile(source, path, flags, ["/stub/" + need for need in needs])

    def app(self, needs):
        defined = self.sample(NAMES, 2)
        header = self.write("/app.h", "".join(definition(symbol, "plain") for symbol in defined))
        flags = ["-include", str(header), *(["-rdynamic"] if self.chance(0.7) else [])]
        self.w.app(["/stub/" + need for need in needs], rpath="/one", flags=flags)

    def write(self, path, text):
        self.w.text(path, text)
        return self.w.at(path)
