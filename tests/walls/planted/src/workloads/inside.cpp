#include <hwy/highway.h>
#include <wye/wye.hpp>

#include "axpy_kernels.hpp"
#include "scheduler/queue.hpp"
