#include <wye/scheduler/job.hpp>

#include "flight/binding.hpp"
#include "pool/pool.hpp"
#include "scheduler/record.hpp"
