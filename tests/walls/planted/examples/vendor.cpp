#include <cstdio>
#include <fstream>

int main() { return cuInit(0) + std::puts("an example may print"); }
