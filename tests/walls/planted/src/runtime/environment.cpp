#include <cstdlib>

const char* value() { return std::getenv("WYE_LANES"); }
