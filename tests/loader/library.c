/* A library whose function calls dlopen. */
#include <dlfcn.h>

void *OPEN(const char *name) {
    return dlopen(name, RTLD_NOW);
}
