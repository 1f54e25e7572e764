#include "device/executable.hpp"

#include <utility>

#include "device/device.hpp"

namespace wye::inline v0::device {

ExecutableBase::~ExecutableBase() = default;

ExecutableBase::ExecutableBase(std::shared_ptr<DeviceBase> device, Artefact artefact)
    : device_(std::move(device)), artefact_(std::move(artefact)) {
  artefact_.code = {};
}

}  // namespace wye::device
