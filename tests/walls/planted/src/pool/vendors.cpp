#include <CLI/CLI.hpp>
#include <hwy/highway.h>
#include <nlohmann/json.hpp>
#include <shaderc/shaderc.h>
#include <sodium.h>
#include <xxhash.h>
#include <spirv/unified1/spirv.hpp11>
