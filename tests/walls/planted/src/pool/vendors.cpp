#include <hwy/highway.h>
#include <shaderc/shaderc.h>
#include <sodium.h>
#include <xxhash.h>
#include <spirv/unified1/spirv.hpp11>
