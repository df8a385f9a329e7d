// maps: prints the map that each function f0, f1, ... of a library returns: "map", then one line per entry in hexadecimal digits.
#include <dlfcn.h>
#include <cstdio>
#include <map>
#include <string>

using Map = std::map<std::string, std::string>;

static void print(const std::string &text) {
  for (unsigned char byte : text) std::printf("%02x", byte);
}

int main(int, char **argv) {
  void *library = dlopen(argv[1], RTLD_NOW);
  if (!library) return std::fprintf(stderr, "%s\n", dlerror()), 1;
  for (int number = 0;; number++) {
    auto *function = reinterpret_cast<const Map &(*)()>(dlsym(library, ("f" + std::to_string(number)).c_str()));
    if (!function) return 0;
    std::printf("map\n");
    for (auto &entry : function()) {
      print(entry.first);
      std::printf("=");
      print(entry.second);
      std::printf("\n");
    }
  }
}
