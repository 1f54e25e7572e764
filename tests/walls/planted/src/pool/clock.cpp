#include <chrono>

using namespace std::chrono;
auto now() { return steady_clock::now(); }
