#include "scheduler/crew.hpp"

#include "base/id.hpp"
#include "base/team.hpp"

namespace wye::inline v0::scheduler {

constinit thread_local int jobs_on_this_thread = 0;

constinit thread_local Crew::ThisWorker Crew::this_worker{};

std::uint32_t this_thread() noexcept { return static_cast<std::uint32_t>(base::this_thread()); }

bool runs_job() noexcept { return jobs_on_this_thread > 0 || base::Team::inside(); }

}  // namespace wye::scheduler
