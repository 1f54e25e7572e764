#include <hwy/highway.h>
#include <shaderc/shaderc.h>
#include <sodium.h>
#include <utf8proc.h>
#include <xxhash.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <spirv/unified1/spirv.hpp11>
