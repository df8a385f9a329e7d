// numbers: prints the result of each function f0, f1, ... of a library, one number per line.
#include <dlfcn.h>
#include <cstdint>
#include <cstdio>
#include <string>

int main(int, char **argv) {
  void *library = dlopen(argv[1], RTLD_NOW);
  if (!library) return std::fprintf(stderr, "%s\n", dlerror()), 1;
  for (int number = 0;; number++) {
    auto *function = reinterpret_cast<std::uint64_t (*)()>(dlsym(library, ("f" + std::to_string(number)).c_str()));
    if (!function) return 0;
    std::printf("%llu\n", static_cast<unsigned long long>(function()));
  }
}
