/* Opens everything that argv names, then prints the mapped files. NAME is opened by dlopen from here, FUNCTION@NAME by the dlopen
   in the library that has this function. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

static int show(struct dl_phdr_info *info, size_t size, void *data) {
    /* The program itself has no name, and the kernel's vDSO has no file. */
    if (*info->dlpi_name && strncmp(info->dlpi_name, "linux-vdso", 10))
        printf("mapped %s\n", info->dlpi_name);
    return 0;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        char *name = strchr(argv[i], '@');
        void *handle;
        if (name) {
            *name++ = 0;
            void *(*open)(const char *) = dlsym(RTLD_DEFAULT, argv[i]);
            if (!open)
                return 3;
            handle = open(name);
        } else {
            handle = dlopen(argv[i], RTLD_NOW);
        }
        struct link_map *map;
        if (handle && !dlinfo(handle, RTLD_DI_LINKMAP, &map))
            printf("opened %s\n", map->l_name);
        else
            printf("refused %s\n", dlerror());
    }
    dl_iterate_phdr(show, 0);
    return 0;
}
