#include <dlfcn.h>

void* load() { return dlopen("libx.so", 2); }
