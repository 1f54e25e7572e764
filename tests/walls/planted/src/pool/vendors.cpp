#include <hwy/highway.h>
#include <shaderc/shaderc.h>
#include <sodium.h>
#include <spirv/unified1/spirv.hpp11>
#include <xxhash.h>
