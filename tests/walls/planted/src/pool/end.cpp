#include <cstdlib>

void end() { std::abort(); }
