#include <wye/kernel/kernel.hpp>
#include <wye/pool/lease.hpp>

#include "cache/private.hpp"
#include "scheduler/queue.hpp"
