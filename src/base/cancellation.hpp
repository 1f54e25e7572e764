#pragma once
/// Threads that the application cancels.
#include <pthread.h>

namespace wye::inline v0::base {

/// Holds back `pthread_cancel` of the calling thread while it exists. A cancellation unwinds the
/// stack, and jobs, locks and drivers cannot be left in the middle: the process would end. The
/// thread ends at its next cancellation point after that.
/// Cost: some nanoseconds; no call of the system.
class CancellationHeld {
 public:
  CancellationHeld() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~CancellationHeld() { pthread_setcancelstate(before_, nullptr); }
  CancellationHeld(const CancellationHeld&) = delete;  // restores once

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace wye::base
