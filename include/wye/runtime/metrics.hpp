#pragma once
/// Numbers about a runtime, all from one moment.
#include <wye/base/bytes.hpp>
#include <wye/cache/shader_cache.hpp>
#include <wye/device/monitoring.hpp>
#include <wye/pool/context_pool.hpp>
#include <wye/scheduler/scheduler.hpp>

#include <vector>

namespace wye {
inline namespace v0 {

struct Metrics {
  PoolMetrics pool;
  CacheMetrics cache;
  SchedulerMetrics jobs;
  std::vector<ContextInfo> contexts;
  std::vector<Monitoring> devices;  ///< of each open device, asked just before that moment
  /// Bytes held: by contexts and by the cache together.
  Bytes bytes() const { return pool.bytes + cache.bytes; }
};

}  // namespace v0
}  // namespace wye
