// Compiles the file that includes it once per instruction set; Highway chooses among them at run
// time. The build defines HWY_TARGET_INCLUDE, the name of that file. Include it first, and on every
// pass: it has no include guard.
#ifdef HWY_TARGET_INCLUDE
#include <hwy/foreach_target.h>
#endif
#include <hwy/highway.h>
