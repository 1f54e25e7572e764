#include "steps.hpp"

namespace wye::inline v0::workloads {

Job Steps::job(std::string name, WorkloadType type) && {
  if (error_) return Job::failed(std::move(name), type, *std::move(error_));
  Call first = std::move(calls_.front());
  calls_.erase(calls_.begin());
  return Job::sequence(std::move(name), type, std::move(first), std::move(calls_));
}

Job refused(std::string name, WorkloadType type, std::string sentence) {
  return Job::failed(std::move(name), type, Error(Errc::invalid_argument, std::move(sentence)));
}

}  // namespace wye::workloads
