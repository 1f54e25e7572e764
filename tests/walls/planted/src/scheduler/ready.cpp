#include "scheduler/ready.hpp"

#include "base/gate.hpp"
#include "scheduler/core.hpp"
