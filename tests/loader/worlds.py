"""The worlds. Each function builds one, and its docstring states the rule of the loader that it exercises."""

ALL = {}


def world(build):
    ALL[build.__name__] = build
    return build


def two_copies(w, first="/one/libx.so", second="/two/libx.so"):
    w.library(first)
    w.library(second)


@world
def rpath(w):
    """The loader searches DT_RPATH."""
    w.library("/one/libx.so")
    w.app(["/one/libx.so"], rpath="/one")


@world
def runpath(w):
    """The loader searches DT_RUNPATH."""
    w.library("/one/libx.so")
    w.app(["/one/libx.so"], runpath="/one")


@world
def rpath_is_inherited(w):
    """The program's DT_RPATH applies to the needs of its libraries."""
    w.library("/one/liby.so")
    w.library("/one/libx.so", ["/one/liby.so"])
    w.app(["/one/libx.so"], rpath="/one")


@world
def runpath_is_not_inherited(w):
    """The program's DT_RUNPATH does not apply to the needs of its libraries."""
    w.library("/one/liby.so")
    w.library("/one/libx.so", ["/one/liby.so"])
    w.app(["/one/libx.so"], runpath="/one")


@world
def rpath_beside_runpath(w):
    """DT_RPATH of an object that also has DT_RUNPATH is ignored, even for the needs of other objects."""
    w.library("/one/liby.so")
    w.library("/one/libx.so", ["/one/liby.so"])
    w.app(["/one/libx.so"], rpath="/one", flags=["-Wl,--spare-dynamic-tags=5"])
    w.add_runpath("/app")


@world
def runpath_shuts_out_inherited_rpath(w):
    """For an object with DT_RUNPATH, the loader does not search the DT_RPATH of its loaders."""
    two_copies(w, "/one/liby.so", "/two/liby.so")
    w.library("/one/libx.so", ["/one/liby.so"], runpath="/two")
    w.app(["/one/libx.so"], rpath="/one")


@world
def runpath_alone_fails(w):
    """For an object with DT_RUNPATH, the loader does not search the DT_RPATH of its loaders, even as the last resort."""
    w.library("/one/liby.so")
    w.library("/one/libx.so", ["/one/liby.so"], runpath="/nowhere")
    w.app(["/one/libx.so"], rpath="/one")


@world
def rpath_past_a_runpath(w):
    """The chain of DT_RPATH continues above an object with DT_RUNPATH."""
    w.library("/one/libz.so")
    w.library("/two/liby.so", ["/one/libz.so"])
    w.library("/one/libx.so", ["/two/liby.so"], runpath="/two")
    w.app(["/one/libx.so"], rpath="/one")


@world
def rpath_of_the_middle(w):
    """The nearest DT_RPATH of the chain comes first."""
    two_copies(w, "/one/libz.so", "/two/libz.so")
    w.library("/two/liby.so", ["/one/libz.so"])
    w.library("/one/libx.so", ["/two/liby.so"], rpath="/two")
    w.app(["/one/libx.so"], rpath="/one")


@world
def rpath_before_library_path(w):
    """DT_RPATH comes before LD_LIBRARY_PATH."""
    two_copies(w)
    w.app(["/one/libx.so"], rpath="/one")
    w.environment["LD_LIBRARY_PATH"] = "/two"


@world
def library_path_before_runpath(w):
    """LD_LIBRARY_PATH comes before DT_RUNPATH."""
    two_copies(w)
    w.app(["/one/libx.so"], runpath="/one")
    w.environment["LD_LIBRARY_PATH"] = "/two"


@world
def library_path_with_semicolon(w):
    """Semicolons separate LD_LIBRARY_PATH too."""
    two_copies(w)
    w.app(["/one/libx.so"], runpath="/one")
    w.environment["LD_LIBRARY_PATH"] = "/nowhere;/two:/one"


@world
def rpath_with_semicolon(w):
    """Semicolons do not separate DT_RPATH."""
    w.library("/one/libx.so")
    w.app(["/one/libx.so"], rpath="/nowhere;/one")


@world
def library_path_with_empty_element(w):
    """An empty element is the working directory."""
    two_copies(w, "/libx.so", "/two/libx.so")
    w.app(["/libx.so"], runpath="/two")
    w.environment["LD_LIBRARY_PATH"] = "/nowhere:"


@world
def library_path_empty(w):
    """An empty LD_LIBRARY_PATH counts as unset."""
    two_copies(w, "/libx.so", "/two/libx.so")
    w.app(["/libx.so"], runpath="/two")
    w.environment["LD_LIBRARY_PATH"] = ""


@world
def rpath_with_empty_element(w):
    """An empty element of DT_RPATH is the working directory too."""
    two_copies(w, "/libx.so", "/two/libx.so")
    w.app(["/libx.so"], rpath="/nowhere::/two")


@world
def library_path_with_origin(w):
    """$ORIGIN in LD_LIBRARY_PATH is the program's."""
    w.library("/opt/lib/libx.so")
    w.app(["/opt/lib/libx.so"], path="/opt/bin/app")
    w.environment["LD_LIBRARY_PATH"] = "$ORIGIN/../lib"


@world
def library_path_for_all(w):
    """LD_LIBRARY_PATH applies to the needs of libraries."""
    w.library("/one/liby.so")
    w.library("/one/libx.so", ["/one/liby.so"])
    w.app(["/one/libx.so"])
    w.environment["LD_LIBRARY_PATH"] = "/one"


@world
def origin_of_a_library(w):
    """$ORIGIN is the folder of the library that names it."""
    w.library("/opt/deps/liby.so")
    w.library("/opt/lib/libx.so", ["/opt/deps/liby.so"], runpath="${ORIGIN}/../deps")
    w.app(["/opt/lib/libx.so"], runpath="/opt/lib")


@world
def origin_of_a_linked_library(w):
    """$ORIGIN of a library is the folder in which it was found, even if that path contains links."""
    w.library("/links/deps/liby.so")
    w.library("/real/deps/liby.so")
    w.library("/real/lib/libx.so", ["/real/deps/liby.so"], runpath="$ORIGIN/../deps")
    w.link("/links/lib/libx.so", "/real/lib/libx.so")
    w.app(["/real/lib/libx.so"], runpath="/links/lib")


@world
def origin_of_a_linked_program(w):
    """$ORIGIN of the program is its folder with all links resolved."""
    w.library("/real/lib/libx.so")
    w.library("/links/lib/libx.so")
    w.app(["/real/lib/libx.so"], runpath="$ORIGIN/../lib", path="/real/bin/app")
    w.link("/links/bin/app", "/real/bin/app")
    w.app_path = "/links/bin/app"


@world
def up_from_a_linked_folder(w):
    """Two dots go up from a link's target."""
    w.library("/real/deep/liby.so")
    w.library("/liby.so")
    w.library("/real/deep/lib/libx.so")
    w.link("/lib2", "/real/deep/lib")
    w.app(["/real/deep/lib/libx.so", "/liby.so"], runpath="/lib2:/lib2/..")


@world
def token_lib(w):
    """$LIB is this distribution's library folder."""
    w.library("/opt" + w.system.replace("/usr", "", 1) + "/libx.so")
    w.app(["/opt" + w.system.replace("/usr", "", 1) + "/libx.so"], runpath="/opt/$LIB")


@world
def token_platform(w):
    """$PLATFORM is haswell on Intel's processors, and x86_64 on others."""
    w.library("/opt/haswell/libx.so")
    w.app(["/opt/haswell/libx.so"], runpath="/opt/$PLATFORM")
    w.undecided = "what $PLATFORM stands for"


@world
def token_unknown(w):
    """A dollar sign before any other text is literal."""
    w.library("/opt/$OTHER/libx.so")
    w.app(["/opt/$OTHER/libx.so"], runpath="/opt/$OTHER")


@world
def cache(w):
    """The loader searches the cache."""
    w.library("/one/libx.so")
    w.app(["/one/libx.so"])
    w.ldconfig("/one")


@world
def cache_of_two(w):
    """The cache's first entry counts."""
    two_copies(w)
    w.app(["/one/libx.so"])
    w.ldconfig("/two", "/one")


@world
def cache_to_nothing(w):
    """If the cache's path does not exist, the loader ignores its other entries and searches the default directories."""
    two_copies(w)
    w.app(["/one/libx.so"])
    w.ldconfig("/one", "/two")
    w.at("/one/libx.so").unlink()


@world
def cache_to_nothing_and_default(w):
    """If the cache's path does not exist, the loader searches the default directories."""
    two_copies(w, "/one/libx.so", "/lib/libx.so")
    w.app(["/one/libx.so"])
    w.ldconfig("/one")
    w.at("/one/libx.so").unlink()


@world
def cache_before_default(w):
    """The cache comes before the default directories."""
    two_copies(w, "/one/libx.so", "/usr/lib/libx.so")
    w.app(["/one/libx.so"])
    w.ldconfig("/one")


@world
def cache_by_level(w):
    """The cache has builds for specific processors."""
    for folder in ("/one", "/one/glibc-hwcaps/x86-64-v2", "/one/glibc-hwcaps/x86-64-v3", "/one/glibc-hwcaps/x86-64-v4"):
        w.library(folder + "/libx.so")
    w.app(["/one/libx.so"])
    w.ldconfig("/one")


@world
def cache_by_level_2(w):
    """A build for older processors in one folder comes before a plain one in an earlier folder."""
    w.library("/one/libx.so")
    w.library("/two/glibc-hwcaps/x86-64-v2/libx.so")
    w.app(["/one/libx.so"])
    w.ldconfig("/one", "/two")


@world
def library_path_by_level(w):
    """Every search path has builds for specific processors."""
    for folder in ("/one", "/one/glibc-hwcaps/x86-64-v2", "/one/glibc-hwcaps/x86-64-v3"):
        w.library(folder + "/libx.so")
    w.app(["/one/libx.so"])
    w.environment["LD_LIBRARY_PATH"] = "/one"


@world
def runpath_by_level(w):
    """A build for newer processors, which some machines lack."""
    w.library("/one/libx.so")
    w.library("/one/glibc-hwcaps/x86-64-v4/libx.so")
    w.app(["/one/libx.so"], runpath="/one")


@world
def level_of_a_later_folder(w):
    """A plain build in an earlier folder comes before one for the processor in a later one."""
    w.library("/one/libx.so")
    w.library("/two/glibc-hwcaps/x86-64-v3/libx.so")
    w.app(["/one/libx.so"], runpath="/one:/two")


@world
def default_directories(w):
    """The first default directory comes first."""
    two_copies(w, "/lib/libx.so", "/usr/lib/libx.so")
    w.app(["/lib/libx.so"])


@world
def default_directories_of_the_distribution(w):
    """The distribution's own directory comes before /lib."""
    two_copies(w, "/lib/libx.so", w.system + "/libx.so")
    w.app(["/lib/libx.so"])


@world
def not_default(w):
    """/usr/local/lib is not a default directory."""
    w.library("/usr/local/lib/libx.so")
    w.app(["/usr/local/lib/libx.so"])


@world
def no_default_libraries(w):
    """DF_1_NODEFLIB: the loader does not search the default directories for the library's needs."""
    w.library("/lib/liby.so")
    w.library("/one/libx.so", ["/lib/liby.so"], flags=["-Wl,-z,nodefaultlib"])
    w.app(["/one/libx.so"], rpath="/one")


@world
def no_default_libraries_in_cache(w):
    """DF_1_NODEFLIB: the loader ignores a cached file in a default directory."""
    w.library("/lib/liby.so")
    w.library("/one/libx.so", ["/lib/liby.so"], flags=["-Wl,-z,nodefaultlib"])
    w.app(["/one/libx.so"], rpath="/one")
    w.ldconfig("/one")


@world
def no_default_libraries_but_cache(w):
    """DF_1_NODEFLIB: the loader uses a cached file in another directory."""
    w.library("/two/liby.so")
    w.library("/one/libx.so", ["/two/liby.so"], flags=["-Wl,-z,nodefaultlib"])
    w.app(["/one/libx.so"], rpath="/one")
    w.ldconfig("/two")


@world
def link_to_nothing(w):
    """The loader skips a dangling link."""
    w.library("/two/libx.so")
    w.link("/one/libx.so", "/nowhere/libx.so")
    w.app(["/two/libx.so"], runpath="/one:/two")


@world
def links_in_a_circle(w):
    """A loop of links ends the search path, and the loader continues with the next one."""
    two_copies(w, "/two/libx.so", "/three/libx.so")
    w.link("/one/libx.so", "/one/libx.so")
    w.app(["/two/libx.so"], runpath="/three")
    w.environment["LD_LIBRARY_PATH"] = "/one:/two"


@world
def folder_of_the_name(w):
    """A folder with the library's name ends the process."""
    w.library("/two/libx.so")
    w.text("/one/libx.so/file", "")
    w.app(["/two/libx.so"], runpath="/one:/two")


@world
def file_too_short(w):
    """An empty file ends the process."""
    w.library("/two/libx.so")
    w.text("/one/libx.so", "")
    w.app(["/two/libx.so"], runpath="/one:/two")


@world
def text_file(w):
    """A linker script ends the process."""
    w.library("/two/libx.so")
    w.text("/one/libx.so", "/* GNU ld script */ GROUP ( /two/libx.so AS_NEEDED ( /two/liby.so ) ) " * 3)
    w.app(["/two/libx.so"], runpath="/one:/two")


@world
def other_class(w):
    """The loader skips a 32-bit library."""
    two_copies(w)
    w.app(["/two/libx.so"], runpath="/one:/two")
    w.patch("/one/libx.so", 4, b"\1")


@world
def other_machine(w):
    """The loader skips a library for another machine."""
    two_copies(w)
    w.app(["/two/libx.so"], runpath="/one:/two")
    w.patch("/one/libx.so", 18, b"\xb7\0")


@world
def object_file(w):
    """A file that is not a shared object ends the process."""
    two_copies(w)
    w.app(["/two/libx.so"], runpath="/one:/two")
    w.patch("/one/libx.so", 16, b"\1\0")


@world
def preload(w):
    """A preloaded library satisfies needs of its soname."""
    two_copies(w)
    w.app(["/one/libx.so"], rpath="/one")
    w.environment["LD_PRELOAD"] = "/two/libx.so"


@world
def preload_of_another_file_name(w):
    """A preloaded library satisfies needs of its soname, whatever the file's name."""
    w.library("/one/libx.so")
    w.library("/two/other.so.1", soname="libx.so")
    w.app(["/one/libx.so"], rpath="/one")
    w.environment["LD_PRELOAD"] = "/two/other.so.1"


@world
def preload_without_soname(w):
    """A preloaded file without a soname satisfies no need."""
    w.library("/one/libx.so")
    w.library("/two/libx.so", soname=None)
    w.app(["/one/libx.so"], rpath="/one")
    w.environment["LD_PRELOAD"] = "/two/libx.so"


@world
def preload_by_name(w):
    """The loader searches the program's DT_RPATH for names in LD_PRELOAD."""
    w.library("/one/libx.so")
    w.app([], rpath="/one")
    w.environment["LD_PRELOAD"] = "libx.so"


@world
def preload_of_several(w):
    """Colons and spaces separate LD_PRELOAD, and the loader skips missing files in it."""
    two_copies(w, "/one/libx.so", "/one/liby.so")
    w.environment["LD_PRELOAD"] = "/one/libx.so:/nowhere.so /one/liby.so"


@world
def preload_that_needs(w):
    """The needs of a preloaded library are loaded too."""
    w.library("/one/liby.so")
    w.library("/one/libx.so", ["/one/liby.so"], runpath="/one")
    w.environment["LD_PRELOAD"] = "/one/libx.so"


@world
def preload_file(w):
    """/etc/ld.so.preload, with a comment."""
    two_copies(w, "/one/libx.so", "/one/liby.so")
    w.text("/etc/ld.so.preload", "/one/libx.so # first\n#/one/none.so\n\t/one/liby.so\n")


@world
def preload_both(w):
    """LD_PRELOAD comes before /etc/ld.so.preload."""
    two_copies(w)
    w.text("/etc/ld.so.preload", "/one/libx.so\n")
    w.environment["LD_PRELOAD"] = "/two/libx.so"
    w.app(["/one/libx.so"])


@world
def preload_with_lib(w):
    """$LIB in LD_PRELOAD."""
    path = "/opt" + w.system.replace("/usr", "", 1) + "/libx.so"
    w.library(path)
    w.environment["LD_PRELOAD"] = "/opt/$LIB/libx.so"


@world
def two_names_by_link(w):
    """A file under two names is mapped once."""
    w.library("/one/libx.so.1", soname=None)
    w.link("/one/libx.so.2", "libx.so.1")
    w.app(["/one/libx.so.1", "/one/libx.so.2"], runpath="/one")


@world
def two_names_by_hard_link(w):
    """A file under two hard links is mapped once."""
    w.library("/one/libx.so.1", soname=None)
    w.hard_link("/two/libx.so.2", "/one/libx.so.1")
    w.app(["/one/libx.so.1", "/two/libx.so.2"], runpath="/one:/two")


@world
def soname_of_a_loaded_one(w):
    """A library loaded by its file's name satisfies needs of its soname."""
    w.library("/one/libx.so.1", soname=None)
    w.library("/two/libx.so.2")
    w.library("/one/liby.so", ["/two/libx.so.2"], runpath="/two")
    w.app(["/one/libx.so.1", "/one/liby.so"], runpath="/one")
    w.library("/one/libx.so.1", soname="libx.so.2")


@world
def first_come(w):
    """The first object that needs a soname decides its file for all."""
    two_copies(w, "/one/libz.so", "/two/libz.so")
    w.library("/one/libx.so", ["/one/libz.so"], runpath="/one")
    w.library("/one/liby.so", ["/two/libz.so"], runpath="/two")
    w.app(["/one/liby.so", "/one/libx.so"], runpath="/one")


@world
def breadth_first(w):
    """The needs of the program come before those of its libraries."""
    two_copies(w, "/one/libz.so", "/two/libz.so")
    w.library("/one/libx.so", ["/one/libz.so"], runpath="/one")
    w.library("/one/liby.so")
    w.app(["/one/libx.so", "/two/libz.so"], rpath="/two:/one")


@world
def needed_by_path(w):
    """A needed name with a slash is a path."""
    w.library("/one/libx.so", soname="/two/libx.so")
    w.library("/two/libx.so", soname="/two/libx.so")
    w.app(["/one/libx.so"], rpath="/one")


@world
def needed_by_path_with_origin(w):
    """A needed path may contain tokens."""
    w.library("/one/libx.so", soname="$ORIGIN/one/libx.so")
    w.app(["/one/libx.so"])


@world
def missing(w):
    """A library that is not found ends the process."""
    w.library("/one/libx.so")
    w.app(["/one/libx.so"])


def versioned(w, path, version):
    """A library whose function has a version."""
    w.text("/versions", "%s { global: unused; };" % version)
    w.library(path, flags=["-Wl,--version-script=%s" % w.at("/versions")])


def user(w, path, of, how=""):
    """A library that refers to another one's function, and so to its version."""
    w.text("/user.c", "extern void *unused(const char *) %s; void *use(void) { return unused; }" % how)
    w.compile(w.at("/user.c"), path, ["-shared", "-fPIC", "-Wl,-soname," + path.rsplit("/")[-1]], [of])


@world
def version_missing(w):
    """A version that the library does not define ends the process."""
    versioned(w, "/one/libx.so", "V2")
    versioned(w, "/two/libx.so", "V1")
    user(w, "/one/liby.so", "/one/libx.so")
    w.app(["/one/liby.so", "/one/libx.so"], runpath="/two:/one")


@world
def version_there(w):
    """A version that the library defines among others."""
    versioned(w, "/one/libx.so", "V2")
    user(w, "/one/liby.so", "/one/libx.so")
    w.app(["/one/liby.so", "/one/libx.so"], runpath="/one")


@world
def version_weak(w):
    """A version that only weak references require may be missing."""
    versioned(w, "/one/libx.so", "V2")
    versioned(w, "/two/libx.so", "V1")
    user(w, "/one/liby.so", "/one/libx.so", "__attribute__((weak))")
    w.app(["/one/liby.so", "/one/libx.so"], runpath="/two:/one")


@world
def version_of_none(w):
    """A library without any versions is accepted."""
    versioned(w, "/one/libx.so", "V2")
    w.library("/two/libx.so")
    user(w, "/one/liby.so", "/one/libx.so")
    w.app(["/one/liby.so", "/one/libx.so"], runpath="/two:/one")


@world
def dlopen_from_the_program(w):
    """dlopen searches the DT_RUNPATH of its caller: the program."""
    w.library("/one/libx.so")
    w.app(runpath="/one")
    w.opens = ["libx.so"]


@world
def dlopen_from_a_library(w):
    """dlopen searches the DT_RUNPATH of its caller: a library."""
    two_copies(w)
    w.library("/one/liby.so", runpath="/two", opens="open_y")
    w.app(["/one/liby.so"], runpath="/one")
    w.opens, w.callers = ["open_y@libx.so"], {"open_y": "/one/liby.so"}


@world
def dlopen_without_runpath(w):
    """dlopen called by a library does not search the program's DT_RUNPATH."""
    w.library("/one/libx.so")
    w.library("/one/liby.so", opens="open_y")
    w.app(["/one/liby.so"], runpath="/one")
    w.opens, w.callers = ["open_y@libx.so"], {"open_y": "/one/liby.so"}


@world
def dlopen_with_inherited_rpath(w):
    """dlopen called by a library searches the program's DT_RPATH."""
    w.library("/one/libx.so")
    w.library("/one/liby.so", opens="open_y")
    w.app(["/one/liby.so"], rpath="/one")
    w.opens, w.callers = ["open_y@libx.so"], {"open_y": "/one/liby.so"}


@world
def dlopen_of_a_loaded_soname(w):
    """dlopen of a loaded soname returns the loaded library."""
    two_copies(w)
    w.library("/one/liby.so", runpath="/two", opens="open_y")
    w.app(["/one/libx.so", "/one/liby.so"], runpath="/one")
    w.opens, w.callers = ["open_y@libx.so"], {"open_y": "/one/liby.so"}


@world
def dlopen_by_path(w):
    """dlopen of a path loads that file in addition to a loaded one of the same soname."""
    two_copies(w)
    w.app(["/one/libx.so"], runpath="/one")
    w.opens = ["/two/libx.so"]


@world
def dlopen_of_the_same_file(w):
    """dlopen of another path to a loaded file returns the loaded library."""
    w.library("/one/libx.so")
    w.link("/two/liby.so", "/one/libx.so")
    w.app(["/one/libx.so"], runpath="/one")
    w.opens = ["/two/liby.so"]


@world
def dlopen_that_lacks(w):
    """dlopen of a library with a need that is not found fails."""
    w.library("/two/liby.so")
    w.library("/one/libx.so", ["/two/liby.so"])
    w.app(runpath="/one")
    w.opens = ["libx.so"]


@world
def dlopen_of_what_needs_the_rpath(w):
    """The needs of an opened library are found by the DT_RPATH of the program that opened it."""
    w.library("/one/liby.so")
    w.library("/one/libx.so", ["/one/liby.so"])
    w.app(rpath="/one")
    w.opens = ["libx.so"]


@world
def dlopen_of_a_version_too_new(w):
    """dlopen of a library that requires an undefined version fails."""
    versioned(w, "/one/libx.so", "V2")
    versioned(w, "/two/libx.so", "V1")
    user(w, "/one/liby.so", "/one/libx.so")
    w.app(["/two/libx.so"], runpath="/two:/one")
    w.opens = ["liby.so"]


@world
def dlopen_of_nothing(w):
    """dlopen of a library that does not exist fails."""
    w.opens = ["libnone.so.1"]


@world
def dlopen_in_library_path(w):
    """dlopen searches LD_LIBRARY_PATH."""
    two_copies(w)
    w.app(runpath="/one")
    w.environment["LD_LIBRARY_PATH"] = "/two"
    w.opens = ["libx.so"]
