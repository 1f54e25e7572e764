#include <hwy/highway.h>
#include <shaderc/shaderc.h>
#include <sodium.h>
#include <xxhash.h>
