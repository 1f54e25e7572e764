// A comment may say vkCreateBuffer, std::thread, getenv and #include "pool/lease.hpp".
/* And so may vkCreateBuffer
   here. */
#include <shaderc/shaderc.hpp>

#include "device/schema.hpp"
#include "kernel/reflect.hpp"

const char* text = "a string may say vkCreateBuffer \" and std::thread";
const char* raw = R"glsl(#include "pool/lease.hpp"
  vkCreateBuffer " std::thread)glsl";
const long number = 1'000'000;
const char quote = '"';
auto time = fences.open() + file.read() + lease.socket_count + Clock::steady().now();
