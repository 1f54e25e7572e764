#pragma once
/// Includes all of wye except its workloads.
#include <wye/base/result.hpp>
#include <wye/cache/shader_cache.hpp>
#include <wye/data/array.hpp>
#include <wye/device/device.hpp>
#include <wye/kernel/compile.hpp>
#include <wye/kernel/kernel.hpp>
#include <wye/pool/context_pool.hpp>
#include <wye/runtime/runtime.hpp>
#include <wye/scheduler/graph.hpp>
#include <wye/scheduler/plan.hpp>
#include <wye/scheduler/scheduler.hpp>
