#include "device/executable.hpp"

#include <utility>

#include "base/text.hpp"
#include "device/device.hpp"

namespace wye::inline v0::device {

ExecutableBase::~ExecutableBase() = default;

ExecutableBase::ExecutableBase(std::shared_ptr<DeviceBase> device, Artefact artefact)
    : device_(std::move(device)), artefact_(std::move(artefact)) {
  artefact_.code = {};
}

std::string early_loop_ends(std::string_view kernel, const AdapterInfo& adapter) {
  return base::text(
      "The driver of '{}' ends the loops of an invocation after {} iterations in total. Constants do not "
      "keep the loops of kernel '{}' below that, and results are wrong if they have more.",
      adapter.id, adapter.limits.loop_iterations, kernel);
}

}  // namespace wye::device
