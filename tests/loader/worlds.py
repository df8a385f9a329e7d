"""The worlds: each function builds one, and its text says which rule of the loader is at stake."""

ALL = {}


def world(build):
    ALL[build.__name__] = build
    return build


def two_copies(w, first="/one/libx.so", second="/two/libx.so"):
    w.library(first)
    w.library(second)


@world
def rpath(w):
    """DT_RPATH is looked at."""
    w.library("/one/libx.so")
    w.app(["/one/libx.so"], rpath="/one")


@world
def runpath(w):
    """DT_RUNPATH is looked at."""
    w.library("/one/libx.so")
    w.app(["/one/libx.so"], runpath="/one")


@world
def rpath_is_inherited(w):
    """The program's DT_RPATH serves what its libraries need."""
    w.library("/one/liby.so")
    w.library("/one/libx.so", ["/one/liby.so"])
    w.app(["/one/libx.so"], rpath="/one")


@world
def runpath_is_not_inherited(w):
    """The program's DT_RUNPATH does not serve what its libraries need."""
    w.library("/one/liby.so")
    w.library("/one/libx.so", ["/one/liby.so"])
    w.app(["/one/libx.so"], runpath="/one")


@world
def rpath_beside_runpath(w):
    """DT_RPATH of an object that has DT_RUNPATH too counts for nothing, not even for what others need."""
    w.library("/one/liby.so")
    w.library("/one/libx.so", ["/one/liby.so"])
    w.app(["/one/libx.so"], rpath="/one", flags=["-Wl,--spare-dynamic-tags=5"])
    w.add_runpath("/app")


@world
def runpath_shuts_out_inherited_rpath(w):
    """Who has a DT_RUNPATH does not look at the DT_RPATH of those above."""
    two_copies(w, "/one/liby.so", "/two/liby.so")
    w.library("/one/libx.so", ["/one/liby.so"], runpath="/two")
    w.app(["/one/libx.so"], rpath="/one")


@world
def runpath_alone_fails(w):
    """Who has a DT_RUNPATH does not look at the DT_RPATH of those above, even if nothing else is left."""
    w.library("/one/liby.so")
    w.library("/one/libx.so", ["/one/liby.so"], runpath="/nowhere")
    w.app(["/one/libx.so"], rpath="/one")


@world
def rpath_past_a_runpath(w):
    """The chain of DT_RPATH goes on above an object with DT_RUNPATH."""
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
    """LD_LIBRARY_PATH is parted by semicolons too."""
    two_copies(w)
    w.app(["/one/libx.so"], runpath="/one")
    w.environment["LD_LIBRARY_PATH"] = "/nowhere;/two:/one"


@world
def rpath_with_semicolon(w):
    """DT_RPATH is not parted by semicolons."""
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
    """An empty LD_LIBRARY_PATH is none."""
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
    """LD_LIBRARY_PATH serves what libraries need."""
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
    """$ORIGIN of a library is the folder that it was found in, though that be full of links."""
    w.library("/links/deps/liby.so")
    w.library("/real/deps/liby.so")
    w.library("/real/lib/libx.so", ["/real/deps/liby.so"], runpath="$ORIGIN/../deps")
    w.link("/links/lib/libx.so", "/real/lib/libx.so")
    w.app(["/real/lib/libx.so"], runpath="/links/lib")


@world
def origin_of_a_linked_program(w):
    """$ORIGIN of the program is the folder that it really is in."""
    w.library("/real/lib/libx.so")
    w.library("/links/lib/libx.so")
    w.app(["/real/lib/libx.so"], runpath="$ORIGIN/../lib", path="/real/bin/app")
    w.link("/links/bin/app", "/real/bin/app")
    w.app_path = "/links/bin/app"


@world
def up_from_a_linked_folder(w):
    """Two dots go up from where a link leads."""
    w.library("/real/deep/liby.so")
    w.library("/liby.so")
    w.library("/real/deep/lib/libx.so")
    w.link("/lib2", "/real/deep/lib")
    w.app(["/real/deep/lib/libx.so", "/liby.so"], runpath="/lib2:/lib2/..")


@world
def token_lib(w):
    """$LIB is the folder of this distribution."""
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
    """A dollar before anything else stays."""
    w.library("/opt/$OTHER/libx.so")
    w.app(["/opt/$OTHER/libx.so"], runpath="/opt/$OTHER")


@world
def cache(w):
    """The cache is looked at."""
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
    """Where the cache's path leads nowhere, no other entry is looked at, but the default directories are."""
    two_copies(w)
    w.app(["/one/libx.so"])
    w.ldconfig("/one", "/two")
    w.at("/one/libx.so").unlink()


@world
def cache_to_nothing_and_default(w):
    """Where the cache's path leads nowhere, the default directories are looked at."""
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
    """The cache has builds for processors."""
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
    """Every search path has builds for processors."""
    for folder in ("/one", "/one/glibc-hwcaps/x86-64-v2", "/one/glibc-hwcaps/x86-64-v3"):
        w.library(folder + "/libx.so")
    w.app(["/one/libx.so"])
    w.environment["LD_LIBRARY_PATH"] = "/one"


@world
def runpath_by_level(w):
    """A build for newer processors, which not all have."""
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
    """/usr/local/lib is no default directory."""
    w.library("/usr/local/lib/libx.so")
    w.app(["/usr/local/lib/libx.so"])


@world
def no_default_libraries(w):
    """DF_1_NODEFLIB: what the library needs is not looked for in default directories."""
    w.library("/lib/liby.so")
    w.library("/one/libx.so", ["/lib/liby.so"], flags=["-Wl,-z,nodefaultlib"])
    w.app(["/one/libx.so"], rpath="/one")


@world
def no_default_libraries_in_cache(w):
    """DF_1_NODEFLIB: nor is a default directory's file taken from the cache."""
    w.library("/lib/liby.so")
    w.library("/one/libx.so", ["/lib/liby.so"], flags=["-Wl,-z,nodefaultlib"])
    w.app(["/one/libx.so"], rpath="/one")
    w.ldconfig("/one")


@world
def no_default_libraries_but_cache(w):
    """DF_1_NODEFLIB: another directory's file is taken from the cache."""
    w.library("/two/liby.so")
    w.library("/one/libx.so", ["/two/liby.so"], flags=["-Wl,-z,nodefaultlib"])
    w.app(["/one/libx.so"], rpath="/one")
    w.ldconfig("/two")


@world
def link_to_nothing(w):
    """A link to nothing is passed over."""
    w.library("/two/libx.so")
    w.link("/one/libx.so", "/nowhere/libx.so")
    w.app(["/two/libx.so"], runpath="/one:/two")


@world
def links_in_a_circle(w):
    """Links in a circle end the search path, and the next one is looked at."""
    two_copies(w, "/two/libx.so", "/three/libx.so")
    w.link("/one/libx.so", "/one/libx.so")
    w.app(["/two/libx.so"], runpath="/three")
    w.environment["LD_LIBRARY_PATH"] = "/one:/two"


@world
def folder_of_the_name(w):
    """A folder of the name ends the process."""
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
    """A text for the linker ends the process."""
    w.library("/two/libx.so")
    w.text("/one/libx.so", "/* GNU ld script */ GROUP ( /two/libx.so AS_NEEDED ( /two/liby.so ) ) " * 3)
    w.app(["/two/libx.so"], runpath="/one:/two")


@world
def other_class(w):
    """A library of 32 bits is passed over."""
    two_copies(w)
    w.app(["/two/libx.so"], runpath="/one:/two")
    w.patch("/one/libx.so", 4, b"\1")


@world
def other_machine(w):
    """A library for another machine is passed over."""
    two_copies(w)
    w.app(["/two/libx.so"], runpath="/one:/two")
    w.patch("/one/libx.so", 18, b"\xb7\0")


@world
def object_file(w):
    """What is no shared object ends the process."""
    two_copies(w)
    w.app(["/two/libx.so"], runpath="/one:/two")
    w.patch("/one/libx.so", 16, b"\1\0")


@world
def preload(w):
    """LD_PRELOAD serves those who need its soname."""
    two_copies(w)
    w.app(["/one/libx.so"], rpath="/one")
    w.environment["LD_PRELOAD"] = "/two/libx.so"


@world
def preload_of_another_file_name(w):
    """LD_PRELOAD serves those who need its soname, whatever the file's name."""
    w.library("/one/libx.so")
    w.library("/two/other.so.1", soname="libx.so")
    w.app(["/one/libx.so"], rpath="/one")
    w.environment["LD_PRELOAD"] = "/two/other.so.1"


@world
def preload_without_soname(w):
    """LD_PRELOAD of a file without a soname serves nobody."""
    w.library("/one/libx.so")
    w.library("/two/libx.so", soname=None)
    w.app(["/one/libx.so"], rpath="/one")
    w.environment["LD_PRELOAD"] = "/two/libx.so"


@world
def preload_by_name(w):
    """Names in LD_PRELOAD are searched for, with the program's DT_RPATH."""
    w.library("/one/libx.so")
    w.app([], rpath="/one")
    w.environment["LD_PRELOAD"] = "libx.so"


@world
def preload_of_several(w):
    """LD_PRELOAD is parted by colons and spaces, and what is not there is left out."""
    two_copies(w, "/one/libx.so", "/one/liby.so")
    w.environment["LD_PRELOAD"] = "/one/libx.so:/nowhere.so /one/liby.so"


@world
def preload_that_needs(w):
    """What a preloaded library needs comes too."""
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
    """What is loaded under its file's name serves those who need its soname."""
    w.library("/one/libx.so.1", soname=None)
    w.library("/two/libx.so.2")
    w.library("/one/liby.so", ["/two/libx.so.2"], runpath="/two")
    w.app(["/one/libx.so.1", "/one/liby.so"], runpath="/one")
    w.library("/one/libx.so.1", soname="libx.so.2")


@world
def first_come(w):
    """Who needs a soname first decides for all."""
    two_copies(w, "/one/libz.so", "/two/libz.so")
    w.library("/one/libx.so", ["/one/libz.so"], runpath="/one")
    w.library("/one/liby.so", ["/two/libz.so"], runpath="/two")
    w.app(["/one/liby.so", "/one/libx.so"], runpath="/one")


@world
def breadth_first(w):
    """What the program needs comes before what its libraries need."""
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
    """A needed path may have tokens."""
    w.library("/one/libx.so", soname="$ORIGIN/one/libx.so")
    w.app(["/one/libx.so"])


@world
def missing(w):
    """What nobody finds ends the process."""
    w.library("/one/libx.so")
    w.app(["/one/libx.so"])


def versioned(w, path, version):
    """A library whose function has a version."""
    w.text("/versions", "%s { global: unused; };" % version)
    w.library(path, flags=["-Wl,--version-script=%s" % w.at("/versions")])


def user(w, path, of, how=""):
    """A library that refers to the function of another one, and so to its version."""
    w.text("/user.c", "extern void *unused(const char *) %s; void *use(void) { return unused; }" % how)
    w.compile(w.at("/user.c"), path, ["-shared", "-fPIC", "-Wl,-soname," + path.rsplit("/")[-1]], [of])


@world
def version_missing(w):
    """A version that the library does not give ends the process."""
    versioned(w, "/one/libx.so", "V2")
    versioned(w, "/two/libx.so", "V1")
    user(w, "/one/liby.so", "/one/libx.so")
    w.app(["/one/liby.so", "/one/libx.so"], runpath="/two:/one")


@world
def version_there(w):
    """A version that the library gives among others."""
    versioned(w, "/one/libx.so", "V2")
    user(w, "/one/liby.so", "/one/libx.so")
    w.app(["/one/liby.so", "/one/libx.so"], runpath="/one")


@world
def version_weak(w):
    """A version that only weak references ask for may be missing."""
    versioned(w, "/one/libx.so", "V2")
    versioned(w, "/two/libx.so", "V1")
    user(w, "/one/liby.so", "/one/libx.so", "__attribute__((weak))")
    w.app(["/one/liby.so", "/one/libx.so"], runpath="/two:/one")


@world
def version_of_none(w):
    """A library without any versions passes."""
    versioned(w, "/one/libx.so", "V2")
    w.library("/two/libx.so")
    user(w, "/one/liby.so", "/one/libx.so")
    w.app(["/one/liby.so", "/one/libx.so"], runpath="/two:/one")


@world
def dlopen_from_the_program(w):
    """dlopen looks at the DT_RUNPATH of its caller: the program."""
    w.library("/one/libx.so")
    w.app(runpath="/one")
    w.opens = ["libx.so"]


@world
def dlopen_from_a_library(w):
    """dlopen looks at the DT_RUNPATH of its caller: a library."""
    two_copies(w)
    w.library("/one/liby.so", runpath="/two", opens="open_y")
    w.app(["/one/liby.so"], runpath="/one")
    w.opens, w.callers = ["open_y@libx.so"], {"open_y": "/one/liby.so"}


@world
def dlopen_without_runpath(w):
    """dlopen of a library does not look at the program's DT_RUNPATH."""
    w.library("/one/libx.so")
    w.library("/one/liby.so", opens="open_y")
    w.app(["/one/liby.so"], runpath="/one")
    w.opens, w.callers = ["open_y@libx.so"], {"open_y": "/one/liby.so"}


@world
def dlopen_with_inherited_rpath(w):
    """dlopen of a library looks at the program's DT_RPATH."""
    w.library("/one/libx.so")
    w.library("/one/liby.so", opens="open_y")
    w.app(["/one/liby.so"], rpath="/one")
    w.opens, w.callers = ["open_y@libx.so"], {"open_y": "/one/liby.so"}


@world
def dlopen_of_a_loaded_soname(w):
    """dlopen of a soname that is there gives what is there."""
    two_copies(w)
    w.library("/one/liby.so", runpath="/two", opens="open_y")
    w.app(["/one/libx.so", "/one/liby.so"], runpath="/one")
    w.opens, w.callers = ["open_y@libx.so"], {"open_y": "/one/liby.so"}


@world
def dlopen_by_path(w):
    """dlopen of a path gives this file beside another one of the same soname."""
    two_copies(w)
    w.app(["/one/libx.so"], runpath="/one")
    w.opens = ["/two/libx.so"]


@world
def dlopen_of_the_same_file(w):
    """dlopen of another path of a file that is there gives what is there."""
    w.library("/one/libx.so")
    w.link("/two/liby.so", "/one/libx.so")
    w.app(["/one/libx.so"], runpath="/one")
    w.opens = ["/two/liby.so"]


@world
def dlopen_that_lacks(w):
    """dlopen of a library that needs what nobody finds fails."""
    w.library("/two/liby.so")
    w.library("/one/libx.so", ["/two/liby.so"])
    w.app(runpath="/one")
    w.opens = ["libx.so"]


@world
def dlopen_of_what_needs_the_rpath(w):
    """What an opened library needs is found by the DT_RPATH of the program, who brought it."""
    w.library("/one/liby.so")
    w.library("/one/libx.so", ["/one/liby.so"])
    w.app(rpath="/one")
    w.opens = ["libx.so"]


@world
def dlopen_of_a_version_too_new(w):
    """dlopen of a library that requires a version which is not given fails."""
    versioned(w, "/one/libx.so", "V2")
    versioned(w, "/two/libx.so", "V1")
    user(w, "/one/liby.so", "/one/libx.so")
    w.app(["/two/libx.so"], runpath="/two:/one")
    w.opens = ["liby.so"]


@world
def dlopen_of_nothing(w):
    """dlopen of what is nowhere."""
    w.opens = ["libnone.so.1"]


@world
def dlopen_in_library_path(w):
    """dlopen looks at LD_LIBRARY_PATH."""
    two_copies(w)
    w.app(runpath="/one")
    w.environment["LD_LIBRARY_PATH"] = "/two"
    w.opens = ["libx.so"]
